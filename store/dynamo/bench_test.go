package dynamo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/store"
)

var readRecords = flag.Int("readrecords", 1_000_000, "records in the table of BenchmarkRead, at least 100")

const (
	readSpace = "row/grayscale"
	readDue   = 100 // due records in the table
	// readMB is the most memory that a scan may add, whatever the number of records.
	readMB = 200
)

var readNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// BenchmarkRead counts requests and read units of a table with a million rows of about 400
// bytes: Scan of all rows, as an audit reads them, Due of 100 due rows, and Scan of 1,000
// names of the greatest length. One row in 100 is due later.
func BenchmarkRead(b *testing.B) {
	s, m := openMetered(b)
	fillTable(b, s, *readRecords)
	b.Run("Scan", func(b *testing.B) {
		for b.Loop() {
			m.take()
			began, rise := time.Now(), memoryRise()
			scanAll(b, s, readSpace, *readRecords, rise)
			took, mb := time.Since(began), rise()
			m.report(b)
			b.ReportMetric(float64(*readRecords)/took.Seconds(), "records/s")
			b.ReportMetric(mb, "MB")
			if mb > readMB {
				b.Errorf("the scan added %.0f MB, want at most %d", mb, readMB)
			}
		}
	})
	b.Run("Due", func(b *testing.B) {
		for b.Loop() {
			m.take()
			found, err := s.Due(b.Context(), store.DueRange{Space: readSpace, Before: readNow, Limit: readDue + 1})
			if err != nil || len(found) != readDue {
				b.Fatalf("%d due records, want %d: %v", len(found), readDue, err)
			}
			m.report(b)
		}
	})
	b.Run("LongNames", func(b *testing.B) {
		const space, most = "row/long", 1000
		fillLongNames(b, s, space, most)
		for b.Loop() {
			m.take()
			scanAll(b, s, space, most, nil)
			m.report(b)
		}
	})
}

// scanAll scans a space, and checks the number of records and their order. It calls
// sample, if there is one, every 1,000 records.
func scanAll(b *testing.B, s *Store, space string, want int, sample func() float64) {
	b.Helper()
	n, last := 0, ""
	for r, err := range s.Scan(b.Context(), store.Range{Space: space}) {
		if err != nil || r.Name <= last {
			b.Fatalf("record %d: %q after %q: %v", n, r.Name, last, err)
		}
		last = r.Name
		if n++; sample != nil && n%1000 == 0 {
			sample()
		}
	}
	if n != want {
		b.Fatalf("%d records, want %d", n, want)
	}
}

// memoryRise returns a function that samples the memory of the process. The function
// returns the greatest increase of all its samples, in MB.
func memoryRise() func() float64 {
	debug.FreeOSMemory()
	used := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys - m.HeapReleased
	}
	start := used()
	peak := start
	return func() float64 {
		peak = max(peak, used())
		return float64(peak-start) / 1e6
	}
}

// fillTable writes rows in parallel, with BatchWriteItem. Consecutive rows are spread over
// the names, as uploads of many users are.
func fillTable(b *testing.B, s *Store, n int) {
	b.Helper()
	const batch, writers = 25, 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for first := w * batch; first < n; first += writers * batch {
				var writes []types.WriteRequest
				for i := first; i < min(first+batch, n); i++ {
					writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: s.item(readRow(i, n))}})
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

// readRow returns row i of n.
func readRow(i, n int) *store.Record {
	k := store.Key{Space: readSpace, Name: store.Join("photos", fmt.Sprintf("in/%08x/%d.jpg", uint32(i)*2654435761, i))}
	r := &store.Record{Key: k, Nonce: store.NewNonce(), Body: strings.Repeat("x", 320)}
	switch each := n / readDue; {
	case i%each == 0 && i/each < readDue:
		r.Due = readNow.Add(-time.Duration(i) * time.Millisecond)
	case i%100 == 1:
		r.Due = readNow.Add(time.Hour)
	}
	return r
}

// fillLongNames writes n names of the greatest length that the driver accepts. All names
// have NUL and \xff bytes, and the same first 1,500 bytes, so their range keys differ in
// the hash only. It checks that the driver rejects a name of 2,200 bytes.
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

// openMetered opens a new table with a client that counts reads.
func openMetered(b *testing.B) (*Store, *readMeter) {
	b.Helper()
	url := servertest.DynamoDB(b, "-Xmx2g").NewTable()
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

// readMeter counts requests, and read units by the published rule. An eventually
// consistent Query costs half a unit for each 4 KiB of all its items together, and at least
// half a unit. BatchGetItem, which is consistent, costs a unit for each 4 KiB of each item.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
type readMeter struct {
	mu       sync.Mutex
	requests int
	units    float64
}

func (m *readMeter) take() (requests int, units float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests, units = m.requests, m.units
	m.requests, m.units = 0, 0
	return requests, units
}

func (m *readMeter) report(b *testing.B) {
	b.Helper()
	requests, units := m.take()
	b.ReportMetric(float64(requests), "requests")
	b.ReportMetric(units, "units")
}

func (m *readMeter) measure(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, data, err := next.HandleInitialize(ctx, in)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	switch got := out.Result.(type) {
	case *dynamodb.QueryOutput:
		m.units += max(pagesOf(got.Items...), 1) / 2
	case *dynamodb.BatchGetItemOutput:
		for _, items := range got.Responses {
			for _, i := range items {
				m.units += pagesOf(i)
			}
		}
	}
	return out, data, err
}

// pagesOf returns the number of 4 KiB pages that items take together.
func pagesOf(items ...item) float64 {
	size := 0
	for _, i := range items {
		for name := range i {
			size += len(name) + len(bytesOf(i, name)) + len(textOf(i, name))
		}
	}
	return math.Ceil(float64(size) / 4096)
}
