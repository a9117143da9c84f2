package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawlhq/pawl/event"
)

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 10} {
		payload := awsPayload(b, n)
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := event.Parse(payload, event.Detect); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func awsPayload(b *testing.B, n int) []byte {
	var doc struct{ Records []json.RawMessage }
	if err := json.Unmarshal(readSample(b, "aws-created-put.json"), &doc); err != nil {
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
