package dynamo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
)

var readRecords = flag.Int("readrecords", 1_000_000, "rows in the table of BenchmarkRead, at least 100")

const (
	readSpace = "row/grayscale"
	readDue   = 100 // due records in the table
)

var readNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A million rows have about 400 bytes each. One in 100 is due later.
func BenchmarkRead(b *testing.B) {
	const long, longNames = "row/long", 1000
	s, m := openMetered(b)
	fillTable(b, s, *readRecords)
	fillLongNames(b, s, long, longNames)
	m.run(b, "Scan", func(b *testing.B) { scanAll(b, s, readSpace, *readRecords) })
	m.run(b, "Audit", func(b *testing.B) { auditAll(b, s, *readRecords) })
	m.run(b, "Due", func(b *testing.B) {
		found, err := s.Due(b.Context(), store.DueRange{Space: readSpace, Before: readNow, Limit: readDue + 1})
		if err != nil || len(found) != readDue {
			b.Fatalf("%d due records, want %d: %v", len(found), readDue, err)
		}
	})
	m.run(b, "LongNames", func(b *testing.B) { scanAll(b, s, long, longNames) })
}

func scanAll(b *testing.B, s *Store, space string, want int) {
	b.Helper()
	n, last := 0, ""
	for r, err := range s.Scan(b.Context(), store.Range{Space: space}) {
		if err != nil || r.Name <= last {
			b.Fatalf("record %d: %q after %q: %v", n, r.Name, last, err)
		}
		n, last = n+1, r.Name
	}
	if n != want {
		b.Fatalf("%d records, want %d", n, want)
	}
}

func auditAll(b *testing.B, s *Store, n int) {
	b.Helper()
	a, err := audit.New(audit.Config{
		Ledger: ledger.NewRows(s), Objects: listing{n: n}, Logger: slog.New(slog.DiscardHandler),
		Pipelines: []audit.Pipeline{{Name: "grayscale", Bucket: "photos", Prefix: "in/", Match: func(event.Object) bool { return true }}},
	})
	if err != nil {
		b.Fatal(err)
	}
	report, err := a.Run(b.Context(), audit.Options{SettleWindow: time.Hour})
	total := report.Total()
	if want := (audit.Counts{Listed: int64(n), Rows: int64(n), Created: int64(n)}); err != nil || total != want {
		b.Fatalf("%+v, want %+v: %v", total, want, err)
	}
}

func fillTable(b *testing.B, s *Store, n int) {
	b.Helper()
	const batch, writers = 25, 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for first := w * batch; first < n; first += writers * batch {
				var writes []types.WriteRequest
				for i := first; i < min(first+batch, n); i++ {
					r, err := readRow(i, n)
					if err != nil {
						b.Error(err)
						return
					}
					writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: s.item(r)}})
				}
				got, err := s.client.BatchWriteItem(b.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.table: writes}})
				if err != nil || len(got.UnprocessedItems) > 0 {
					b.Errorf("rows from %d on: %d not written: %v", first, len(got.UnprocessedItems), err)
					return
				}
			}
		})
	}
	if wg.Wait(); b.Failed() {
		b.FailNow()
	}
}

type listing struct {
	bucket.Store
	n int
}

func (l listing) List(_ context.Context, _, _, after string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for i := sort.Search(l.n, func(i int) bool { return readObject(i).Key > after }); i < l.n && yield(readObject(i), nil); i++ {
		}
	}
}

func readObject(i int) bucket.Info {
	return bucket.Info{Key: fmt.Sprintf("in/2026/%08d.jpg", i), ETag: fmt.Sprintf("%032x", i), ModTime: readNow, Size: int64(i)}
}

func readRow(i, n int) (*store.Record, error) {
	o := readObject(i)
	v := ledger.Version{Generation: 1, Kind: event.Created, Identity: ledger.Identity{ETag: o.ETag, ModTime: o.ModTime, Meta: "0123456789abcdef", Size: o.Size}}
	row := ledger.Row{
		Want: v, Have: v, Lease: ledger.Lease{Fence: readNow.UnixMilli()}, EventTime: readNow, CreatedTime: readNow, CreatedAt: readNow, UpdatedAt: readNow,
		History: []ledger.Entry{
			{At: readNow, What: "completed", Note: "acted"}, {At: readNow, What: "claimed", Note: "fence 1774000000000 by host/4711/0123456789abcdef"},
			{At: readNow, What: "raised", Note: "created 0055AED6DCD90281E5.0 ObjectCreated:Put"},
		},
	}
	body, err := ledger.Encode(&row)
	r := &store.Record{Key: store.Key{Space: readSpace, Name: store.Join("photos", o.Key)}, Nonce: store.NewNonce(), Body: body}
	switch each := n / readDue; {
	case i%each == 0 && i/each < readDue:
		r.Due = readNow.Add(-time.Duration(i) * time.Millisecond)
	case i%100 == 1:
		r.Due = readNow.Add(time.Hour)
	}
	return r, err
}

// All names contain NUL and \xff bytes and start with the same 1,500 bytes, so their range keys
// differ only in the hash.
func fillLongNames(b *testing.B, s *Store, space string, n int) {
	b.Helper()
	begin := strings.Repeat("\x00\xff\x01k", 375)
	for i := range n {
		tail := fmt.Sprintf("\x00%08x\xff", uint32(i)*2654435761)
		long := begin + strings.Repeat("\xff", traits.Name-len(space)-len(begin)-len(tail)) + tail
		if out := swapNew(b, s, store.Key{Space: space, Name: long}); !out.Applied {
			b.Fatalf("name %d: %+v", i, out)
		}
	}
	name := begin + strings.Repeat("\xff", 2200-len(begin))
	if out := swapNew(b, s, store.Key{Space: space, Name: name}); !errors.Is(out.Err, store.ErrRejected) {
		b.Fatalf("a name of 2,200 bytes: %+v, want %v", out, store.ErrRejected)
	}
}

func swapNew(b *testing.B, s *Store, k store.Key) store.Outcome {
	b.Helper()
	out, err := s.Swap(b.Context(), []store.Change{{Key: k, Next: &store.Record{Key: k, Nonce: store.NewNonce()}}})
	if err != nil {
		b.Fatal(err)
	}
	return out[0]
}

func openMetered(b *testing.B) (*Store, *readMeter) {
	b.Helper()
	url := servertest.DynamoDB(b).NewTable()
	if err := Create(b.Context(), url); err != nil {
		b.Fatal(err)
	}
	s, err := Open(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	m := &readMeter{}
	s.client = dynamodb.New(s.client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("readMeter", m.measure), middleware.After)
		})
	})
	return s, m
}

// readMeter counts units by the published rule:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
type readMeter struct {
	mu       sync.Mutex
	requests int
	units    float64
	memory   uint64 // maximum memory of the process after a request
}

func (m *readMeter) run(b *testing.B, name string, read func(b *testing.B)) {
	b.Run(name, func(b *testing.B) {
		for b.Loop() {
			debug.FreeOSMemory()
			start := memoryInUse()
			*m = readMeter{memory: start}
			read(b)
			b.ReportMetric(float64(m.requests), "requests")
			b.ReportMetric(m.units, "units")
			b.ReportMetric(float64(m.memory-start)/1e6, "MB")
		}
	})
}

func memoryInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys - m.HeapReleased
}

func (m *readMeter) measure(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, data, err := next.HandleInitialize(ctx, in)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	m.memory = max(m.memory, memoryInUse())
	switch got := out.Result.(type) {
	case *dynamodb.QueryOutput:
		units := max(pagesOf(got.Items...), 1)
		if q, ok := in.Parameters.(*dynamodb.QueryInput); ok && !aws.ToBool(q.ConsistentRead) {
			units /= 2
		}
		m.units += units
	case *dynamodb.BatchGetItemOutput:
		for _, items := range got.Responses {
			for _, i := range items {
				m.units += pagesOf(i)
			}
		}
	}
	return out, data, err
}

func pagesOf(items ...item) float64 {
	size := 0
	for _, i := range items {
		for name := range i {
			size += len(name) + len(bytesOf(i, name)) + len(textOf(i, name))
		}
	}
	return math.Ceil(float64(size) / 4096)
}
