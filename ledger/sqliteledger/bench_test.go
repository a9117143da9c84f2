package sqliteledger

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/rowjson"
	"github.com/pawlhq/pawl/ledger"
)

// batch is how many rows go into one transaction.
const batch = 500

// BenchmarkSwap writes what a worker writes: each event is swapped in as a new
// row, claimed already, and then swapped for the completed one. Its rows/s over
// those of BenchmarkBareUpsert are what compare-and-swap costs.
func BenchmarkSwap(b *testing.B) {
	s := openBench(b)
	events := 0
	for b.Loop() {
		b.StopTimer()
		claimed, completed := makeBatch(b, events)
		b.StartTimer()
		for _, changes := range [][]ledger.Change{claimed, completed} {
			out, err := s.Swap(b.Context(), changes)
			if err != nil {
				b.Fatal(err)
			}
			for _, o := range out {
				if !o.Applied {
					b.Fatal("refused")
				}
			}
		}
		events += batch
	}
	report(b, events)
}

// BenchmarkBareUpsert writes the same rows to the same table with nothing but
// upserts; the rows are encoded beforehand.
func BenchmarkBareUpsert(b *testing.B) {
	s := openBench(b)
	conn, err := s.writer.Take(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer s.writer.Put(conn)
	events := 0
	for b.Loop() {
		b.StopTimer()
		claimed, completed := makeBatch(b, events)
		first, err := rowjson.Encode(claimed)
		if err != nil {
			b.Fatal(err)
		}
		second, err := rowjson.Encode(completed)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		upsert(b, conn, claimed, first)
		upsert(b, conn, completed, second)
		events += batch
	}
	report(b, events)
}

const upsertSQL = `INSERT INTO ledger (pipeline, bucket, key, version, nonce, due, row)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
	ON CONFLICT DO UPDATE SET nonce = ?5, due = ?6, row = ?7`

func upsert(b *testing.B, conn *sqlite.Conn, changes []ledger.Change, bodies []string) {
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		b.Fatal(err)
	}
	stmt, err := conn.Prepare(upsertSQL)
	if err != nil {
		b.Fatal(err)
	}
	for i := range changes {
		bindKey(stmt, 1, changes[i].Key)
		bindRow(stmt, changes[i].Row, bodies[i])
		if _, err := stmt.Step(); err != nil {
			b.Fatal(err)
		}
		if err := stmt.Reset(); err != nil {
			b.Fatal(err)
		}
	}
	if end(&err); err != nil {
		b.Fatal(err)
	}
}

func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "pawl.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func report(b *testing.B, events int) {
	b.ReportMetric(float64(2*events)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(0, "ns/op")
}

// makeBatch makes the two writes for each event of a batch, numbered from
// first, by the transitions themselves.
func makeBatch(b *testing.B, first int) (claimed, completed []ledger.Change) {
	b.Helper()
	p := ledger.DefaultPolicy()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range batch {
		seq, err := event.ParseSequencer(fmt.Sprintf("0055AED6DC%08X", first+i))
		if err != nil {
			b.Fatal(err)
		}
		now = now.Add(time.Millisecond)
		row := ledger.Row{RowKey: ledger.RowKey{Pipeline: "grayscale", Bucket: "photos", Key: key(first + i)}}
		row, _ = row.Observe(&event.Event{
			Kind: event.Created, Sequencer: seq, Time: now, Name: "ObjectCreated:Put",
			ETag: "d41d8cd98f00b204e9800998ecf8427e", Size: 123456,
		}, true, now)
		row, attempt, why := row.Claim("host-12345-abcdef", &p, now)
		if why != ledger.Granted {
			b.Fatal(why)
		}
		ending := ledger.Ending{Read: ledger.Read{Kind: event.Created, Identity: ledger.Identity{
			ETag: "d41d8cd98f00b204e9800998ecf8427e", ModTime: now.Truncate(time.Second), Size: 123456,
		}}}
		done, ok := row.Complete(&attempt, &ending, true, &p, now.Add(time.Second))
		if !ok {
			b.Fatal("completion refused")
		}
		row.Nonce, done.Nonce = nonce(b), nonce(b)
		claimed = append(claimed, ledger.Change{Key: row.RowKey, Row: &row})
		completed = append(completed, ledger.Change{Key: row.RowKey, Expect: row.Nonce, Row: &done})
	}
	return claimed, completed
}

// key spreads consecutive events over the key space, as uploads by many do.
func key(i int) string {
	return fmt.Sprintf("in/%08x/%d.jpg", uint32(i)*2654435761, i)
}

func nonce(b *testing.B) (n ledger.Nonce) {
	if _, err := rand.Read(n[:]); err != nil {
		b.Fatal(err)
	}
	return n
}
