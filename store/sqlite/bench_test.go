package sqlite

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/store"
)

const benchBatch = 500

// BenchmarkSwap alternates with plain upserts of the same bytes. ratio is the rate of Swap relative
// to the upserts.
func BenchmarkSwap(b *testing.B) {
	s, bare := openBench(b, "swap.db"), openBench(b, "bare.db")
	w := <-bare.writer
	defer func() { bare.writer <- w }()
	stmt, err := w.conn.Prepare(upsertSQL)
	if err != nil {
		b.Fatal(err)
	}
	var swapTime, bareTime time.Duration
	events := 0
	for b.Loop() {
		claimed, completed := makeBatch(events)
		for _, changes := range [][]store.Change{claimed, completed} {
			start := time.Now()
			upsert(b, w, stmt, changes)
			bareTime += time.Since(start)
			start = time.Now()
			out, err := s.Swap(b.Context(), changes)
			swapTime += time.Since(start)
			if err != nil || !out[len(out)-1].Applied {
				b.Fatal(out, err)
			}
		}
		events += benchBatch
	}
	b.ReportMetric(float64(2*events)/swapTime.Seconds(), "swaps/s")
	b.ReportMetric(float64(2*events)/bareTime.Seconds(), "upserts/s")
	b.ReportMetric(bareTime.Seconds()/swapTime.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

const upsertSQL = `INSERT INTO record (space, name, nonce, due, body) VALUES (?1, ?2, ?3, ?4, ?5)
	ON CONFLICT DO UPDATE SET nonce = ?3, due = ?4, body = ?5`

func upsert(b *testing.B, w *writer, stmt *sqlite.Stmt, changes []store.Change) {
	b.Helper()
	end, err := sqlitex.ImmediateTransaction(w.conn)
	if err != nil {
		b.Fatal(err)
	}
	for i := range changes {
		w.buf = bindKey(stmt, changes[i].Key, w.buf)
		bindRecord(stmt, changes[i].Next)
		if err := run(stmt); err != nil {
			b.Fatal(err)
		}
	}
	if end(&err); err != nil {
		b.Fatal(err)
	}
}

func openBench(b *testing.B, name string) *Store {
	b.Helper()
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), name))
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

// Consecutive events have distant names, like uploads of many users.
func makeBatch(first int) (claimed, completed []store.Change) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range benchBatch {
		n := first + i
		k := store.Key{Space: "row/grayscale", Name: fmt.Sprintf("photos\x00\x01in/%08x/%d.jpg", uint32(n)*2654435761, n)}
		claim := &store.Record{Key: k, Due: now, Body: strings.Repeat("x", 300)}
		done := &store.Record{Key: k, Body: strings.Repeat("x", 320)}
		_, _ = rand.Read(claim.Nonce[:]) // never fails
		_, _ = rand.Read(done.Nonce[:])
		claimed = append(claimed, store.Change{Key: k, Next: claim})
		completed = append(completed, store.Change{Key: k, Expect: claim.Nonce, Next: done})
	}
	return claimed, completed
}

func BenchmarkApply(b *testing.B) {
	s := openBench(b, "apply.db")
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			changes := make([]store.Change, 4)
			for i := range changes {
				r := &store.Record{Key: store.Key{Space: "file", Name: rand.Text()}, Body: strings.Repeat("x", 300)}
				_, _ = rand.Read(r.Nonce[:])
				changes[i] = store.Change{Key: r.Key, Next: r}
			}
			if out, err := s.Apply(b.Context(), changes); err != nil || !out[3].Applied {
				b.Error(out, err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "applies/s")
	b.ReportMetric(0, "ns/op")
}
