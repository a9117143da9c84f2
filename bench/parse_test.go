package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/pawlhq/pawl/event"
)

var parsers = []struct {
	name  string
	parse func([]byte) (records int, err error)
}{
	{"pawl", func(payload []byte) (int, error) {
		batch, err := event.Parse(payload, event.Detect)
		return len(batch.Events), err
	}},
	{"encoding-json", func(payload []byte) (int, error) {
		var e events.S3Event
		err := json.Unmarshal(payload, &e)
		return len(e.Records), err
	}},
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 10} {
		payload := awsPayload(b, n)
		for _, p := range parsers {
			b.Run(fmt.Sprintf("records=%d/%s", n, p.name), func(b *testing.B) {
				b.SetBytes(int64(len(payload)))
				b.ReportAllocs()
				for b.Loop() {
					if got, err := p.parse(payload); err != nil || got != n {
						b.Fatalf("%d of %d records, %v", got, n, err)
					}
				}
			})
		}
	}
}

// BenchmarkParseRatio alternates between the parsers within a millisecond, so that other load
// affects both equally. It reports the time of encoding/json divided by the time of event.Parse.
func BenchmarkParseRatio(b *testing.B) {
	for _, n := range []int{1, 10} {
		payload := awsPayload(b, n)
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			var took [2]time.Duration
			for b.Loop() {
				for i, p := range parsers {
					start := time.Now()
					for range 10 {
						if got, err := p.parse(payload); err != nil || got != n {
							b.Fatalf("%d of %d records, %v", got, n, err)
						}
					}
					took[i] += time.Since(start)
				}
			}
			b.ReportMetric(float64(took[1])/float64(took[0]), "times")
		})
	}
}

// awsPayload repeats the sample's record with different keys and sequencers.
func awsPayload(b *testing.B, n int) []byte {
	sample, err := os.ReadFile("../event/testdata/samples/aws-created-put.json")
	if err != nil {
		b.Fatal(err)
	}
	var doc struct{ Records []json.RawMessage }
	if err := json.Unmarshal(sample, &doc); err != nil {
		b.Fatal(err)
	}
	record := doc.Records[0]
	doc.Records = nil
	for i := range n {
		r := bytes.Replace(record, []byte("a+b"), fmt.Appendf(nil, "a+b-%04d", i), 1)
		r = bytes.Replace(r, []byte("DCD90281E5"), fmt.Appendf(nil, "DCD9%06X", i), 1)
		doc.Records = append(doc.Records, r)
	}
	payload, err := json.Marshal(doc)
	if err != nil {
		b.Fatal(err)
	}
	return payload
}
