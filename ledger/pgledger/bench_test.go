package pgledger

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/rowjson"
	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger"
)

// benchBatch is how many rows go into one statement.
const benchBatch = 500

const upsertSQL = `INSERT INTO {}.ledger (pipeline, bucket, key, version, nonce, due, body)
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::uuid[], $6::timestamptz[], $7::text[])
	ON CONFLICT (pipeline, bucket, key, version) DO UPDATE SET nonce = excluded.nonce, due = excluded.due, body = excluded.body`

// BenchmarkSwap writes what a worker writes: each event is swapped in as a new row,
// claimed already, and then swapped for the completed one. In the same run, by turns,
// it writes such rows with nothing but bare upserts, encoded beforehand; ratio is
// Swap's rate over theirs.
func BenchmarkSwap(b *testing.B) {
	server := servertest.Postgres(b, "fsync=on")
	s, err := Open(b.Context(), server.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var swaps, bare time.Duration
	events := 0
	for b.Loop() {
		first, second := makeBatch(b, events)
		start := time.Now()
		for _, changes := range [][]ledger.Change{first, second} {
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
		swaps += time.Since(start)
		first, second = makeBatch(b, events+benchBatch)
		bare += bareUpsert(b, s, first) + bareUpsert(b, s, second)
		events += 2 * benchBatch
	}
	rows := float64(events)
	b.ReportMetric(rows/swaps.Seconds(), "swap-rows/s")
	b.ReportMetric(rows/bare.Seconds(), "bare-rows/s")
	b.ReportMetric(bare.Seconds()/swaps.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// bareUpsert writes the rows, and returns how long that took.
func bareUpsert(b *testing.B, s *Store, changes []ledger.Change) time.Duration {
	bodies, err := rowjson.Encode(changes)
	if err != nil {
		b.Fatal(err)
	}
	var all batch
	for i := range changes {
		all.add(&changes[i], bodies[i], i)
	}
	start := time.Now()
	_, err = s.pool.Exec(b.Context(), in(s.name, upsertSQL), append(all.keys.args(), all.nonces, all.dues, all.bodies)...)
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// makeBatch makes the two writes for each event of a batch, numbered from first, by
// the transitions themselves.
func makeBatch(b *testing.B, first int) (claimed, completed []ledger.Change) {
	b.Helper()
	p := ledger.DefaultPolicy()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := first; i < first+benchBatch; i++ {
		seq, err := event.ParseSequencer(fmt.Sprintf("0055AED6DC%08X", i))
		if err != nil {
			b.Fatal(err)
		}
		now = now.Add(time.Millisecond)
		k := ledger.RowKey{Pipeline: "grayscale", Bucket: "photos", Key: fmt.Sprintf("in/%08x/%d.jpg", uint32(i)*2654435761, i)}
		row, _ := ledger.Row{RowKey: k}.Observe(&event.Event{
			Kind: event.Created, Sequencer: seq, Time: now, Name: "ObjectCreated:Put",
			ETag: "d41d8cd98f00b204e9800998ecf8427e", Size: 123456,
		}, true, now)
		row, attempt, why := row.Claim("host-12345-abcdef", &p, now)
		if why != ledger.Granted {
			b.Fatal(why)
		}
		done, ok := row.Complete(&attempt, &ledger.Ending{Read: ledger.Read{Kind: event.Created, Identity: ledger.Identity{
			ETag: "d41d8cd98f00b204e9800998ecf8427e", ModTime: now.Truncate(time.Second), Size: 123456,
		}}}, true, &p, now.Add(time.Second))
		if !ok {
			b.Fatal("completion refused")
		}
		_, _ = rand.Read(row.Nonce[:])
		_, _ = rand.Read(done.Nonce[:])
		claimed = append(claimed, ledger.Change{Key: k, Row: &row})
		completed = append(completed, ledger.Change{Key: k, Expect: row.Nonce, Row: &done})
	}
	return claimed, completed
}
