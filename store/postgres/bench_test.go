package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
)

const upsertSQL = `INSERT INTO {}.record (space, name, nonce, due, body)
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::uuid[], $4::timestamptz[], $5::text[])
	ON CONFLICT (space, name) DO UPDATE SET nonce = excluded.nonce, due = excluded.due, body = excluded.body`

// BenchmarkSwap alternates with plain upserts of the same bytes. ratio is the rate of Swap relative
// to the upserts.
func BenchmarkSwap(b *testing.B) {
	s := openStore(b, servertest.Postgres(b, "fsync=on").URL)
	var swaps, bare time.Duration
	records := 0
	for b.Loop() {
		first, second := makeBatch(records)
		start := time.Now()
		for _, changes := range [][]store.Change{first, second} {
			out, err := s.Swap(b.Context(), changes)
			if err != nil || !out[0].Applied {
				b.Fatal(out, err)
			}
		}
		swaps += time.Since(start)
		records += traits.Batch
		first, second = makeBatch(records)
		bare += bareUpsert(b, s, first) + bareUpsert(b, s, second)
		records += traits.Batch
	}
	b.ReportMetric(float64(records)/swaps.Seconds(), "swap-records/s")
	b.ReportMetric(float64(records)/bare.Seconds(), "bare-records/s")
	b.ReportMetric(bare.Seconds()/swaps.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

func bareUpsert(b *testing.B, s *Store, changes []store.Change) time.Duration {
	var all changeColumns
	for i := range changes {
		all.add(&changes[i], i)
	}
	start := time.Now()
	if _, err := s.pool.Exec(b.Context(), withSchema(s.schema, upsertSQL), all.spaces, all.names, all.nonces, all.dues, all.bodies); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func makeBatch(first int) (claimed, completed []store.Change) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := first; i < first+traits.Batch; i++ {
		r := newRecord("row/grayscale", store.Join("photos", fmt.Sprintf("in/%08x/%d.jpg", uint32(i)*2654435761, i)))
		r.Due, r.Body = now.Add(time.Duration(i)*time.Millisecond), strings.Repeat("x", 180)
		done := replacement(r)
		done.Next.Body = strings.Repeat("y", 220)
		claimed, completed = append(claimed, insertion(r)), append(completed, done)
	}
	return claimed, completed
}

func BenchmarkApply(b *testing.B) {
	s := openStore(b, servertest.Postgres(b, "fsync=on").URL)
	for _, writers := range []int{1, 4} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			var wg sync.WaitGroup
			start := time.Now()
			for w := range writers {
				quota := newRecord("quota", rename(b, w))
				s.insertAll(b, quota)
				wg.Go(func() {
					for i := range b.N {
						changes := uploads(rename(b, w), i)
						next := replacement(quota)
						quota = *next.Next
						out, err := s.Apply(b.Context(), append(changes, next))
						if err != nil || !out[0].Applied {
							b.Error(out, err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(writers*b.N)/time.Since(start).Seconds(), "applies/s")
		})
	}
}

func rename(b *testing.B, w int) string { return fmt.Sprintf("%s/%d/%d", b.Name(), b.N, w) }

func uploads(prefix string, n int) (all []store.Change) {
	for i := range 8 {
		id := fmt.Sprintf("%s/%d/%d", prefix, n, i)
		for _, space := range []string{"file", "entity/" + prefix, "idempotency"} {
			r := newRecord(space, id)
			r.Body = strings.Repeat("x", 200)
			all = append(all, insertion(r))
		}
	}
	return all
}
