package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
	pawlsqlite "github.com/pawlhq/pawl/store/sqlite"
)

const cycleEvents = 50_000

// BenchmarkCycle compares full cycles of Pawl on SQLite with plain upserts of the same rows. The ratio
// shows the cost of order, leases and compare-and-swap.
func BenchmarkCycle(b *testing.B) {
	var cycle, bare time.Duration
	var bytes int64
	for n := 0; b.Loop(); n++ {
		dir := b.TempDir()
		events := makeEvents(b)
		records, err := pawlsqlite.Open(b.Context(), filepath.Join(dir, "cycle.db"))
		if err != nil {
			b.Fatal(err)
		}
		tape := &recordingStore{Store: records}
		start := time.Now()
		runCycle(b, tape, events)
		cycle += time.Since(start)
		if err := records.Close(); err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "cycle.db"))
		if err != nil {
			b.Fatal(err)
		}
		bytes = info.Size() / cycleEvents
		bare += upsertAll(b, filepath.Join(dir, "bare.db"), tape.records)
		if got := len(tape.records); got != 2*cycleEvents {
			b.Fatalf("%d rows were written for %d events: want two for each", got, cycleEvents)
		}
	}
	b.ReportMetric(float64(b.N*cycleEvents)/cycle.Seconds(), "cycles/s")
	b.ReportMetric(float64(b.N*cycleEvents)/bare.Seconds(), "bare/s")
	b.ReportMetric(bare.Seconds()/cycle.Seconds(), "ratio")
	b.ReportMetric(float64(bytes), "bytes/row")
	b.ReportMetric(0, "ns/op")
}

func makeEvents(b *testing.B) []event.Event {
	b.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond) // in the format of stores
	events := make([]event.Event, cycleEvents)
	for i := range events {
		seq, err := event.ParseSequencer(fmt.Sprintf("0055AED6DC%08X", i+1))
		if err != nil {
			b.Fatal(err)
		}
		events[i] = event.Event{
			Object: event.Object{Bucket: "photos", Key: fmt.Sprintf("in/%08x/%d.jpg", uint32(i)*2654435761, i)},
			Kind:   event.Created, Sequencer: seq, Time: now, ETag: "d41d8cd98f00b204e9800998ecf8427e", Size: 1000,
			Name: "ObjectCreated:Put", Dialect: event.AWS,
		}
	}
	return events
}

type recordingStore struct {
	store.Store
	mu      sync.Mutex
	records []*store.Record
}

func (t *recordingStore) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	t.mu.Lock()
	for _, c := range changes {
		if strings.HasPrefix(c.Key.Space, "row/") {
			t.records = append(t.records, c.Next)
		}
	}
	t.mu.Unlock()
	return t.Store.Swap(ctx, changes)
}

type feed []event.Event

func (f feed) Run(ctx context.Context, sink source.Sink) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := 0; i < len(f); i += 10 {
		wg.Add(1)
		d := source.Delivery{Events: f[i:min(i+10, len(f))], Done: func(source.Outcome) { wg.Done() }}
		if err := sink.Deliver(ctx, d); err != nil {
			wg.Done()
			return err
		}
	}
	return nil
}

func (f feed) Declares() (event.Dialect, bool) { return event.AWS, false }

func runCycle(b *testing.B, records store.Store, events []event.Event, with ...func(*pawl.Config)) {
	b.Helper()
	cfg := pawl.Config{
		Ledger: records, Sources: []pawl.Source{feed(events)}, Concurrency: 4000, MaxBacklogEvents: 4000,
		MaxBytes: 1 << 40, Logger: slog.New(slog.DiscardHandler),
		Pipelines: []pawl.Pipeline{{
			Name: "noop", Match: pawl.Match{Bucket: "photos"}, Order: pawl.EventOrder,
			Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error { return nil }),
		}},
	}
	for _, f := range with {
		f(&cfg)
	}
	p, err := pawl.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	if s := p.Stats(); s.Completed != int64(len(events)) {
		b.Fatalf("%d of %d completed", s.Completed, len(events))
	}
}

const bareUpsert = `INSERT INTO record (space, name, nonce, due, body) VALUES (?1, ?2, ?3, ?4, ?5)
	ON CONFLICT DO UPDATE SET nonce = ?3, due = ?4, body = ?5`

func upsertAll(b *testing.B, path string, records []*store.Record) time.Duration {
	b.Helper()
	s, err := pawlsqlite.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenWAL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA synchronous=FULL", nil); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	for batch := range slices.Chunk(records, 500) {
		upsertBatch(b, conn, batch)
	}
	return time.Since(start)
}

func upsertBatch(b *testing.B, conn *sqlite.Conn, records []*store.Record) {
	b.Helper()
	done, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		b.Fatal(err)
	}
	stmt, err := conn.Prepare(bareUpsert)
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range records {
		stmt.BindBytes(1, []byte(r.Space))
		stmt.BindBytes(2, []byte(r.Name))
		stmt.BindBytes(3, r.Nonce[:])
		if r.Due.IsZero() {
			stmt.BindNull(4)
		} else {
			stmt.BindInt64(4, r.Due.UnixMilli())
		}
		stmt.BindText(5, r.Body)
		if _, err := stmt.Step(); err != nil {
			b.Fatal(err)
		}
		if err := stmt.Reset(); err != nil {
			b.Fatal(err)
		}
	}
	if done(&err); err != nil {
		b.Fatal(err)
	}
}
