package pgledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"
	"time"

	cryptorand "crypto/rand"

	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger"
)

// Writers whose answers are lost by the network, while the server crashes, lose no
// increment and make none twice.
func TestFaults(t *testing.T) {
	const cuts, crashes, writers = 100, 3, 4
	server := servertest.Postgres(t)
	checked := open(t, server.URL)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	lost := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	flaky := servertest.NewFlaky(t, u.Host, func([]byte) bool {
		if rand.IntN(12) > 0 {
			return false
		}
		select {
		case lost <- struct{}{}:
		case <-ctx.Done():
		}
		return true
	})
	through := server.With(func(u *url.URL, _ url.Values) { u.Host = flaky.Addr })
	var wg sync.WaitGroup
	made := make([]uint64, writers)
	for i := range writers {
		wg.Go(func() { made[i] = count(ctx, t, through, ledger.RowKey{Pipeline: "p", Key: fmt.Sprint(i)}) })
	}
	for i := range cuts {
		select {
		case <-lost:
		case <-t.Context().Done():
			t.Error("the test has run out of time")
		}
		if i%(cuts/crashes) == cuts/crashes/2 {
			server.Stop()
			server.Start()
		}
	}
	stop()
	wg.Wait()
	for i, want := range made {
		rows, err := checked.Load(t.Context(), []ledger.RowKey{{Pipeline: "p", Key: fmt.Sprint(i)}})
		for err != nil && t.Context().Err() == nil { // its connections were cut by the crashes
			rows, err = checked.Load(t.Context(), []ledger.RowKey{{Pipeline: "p", Key: fmt.Sprint(i)}})
		}
		if len(rows) != 1 || rows[0].Want.Generation != want {
			t.Errorf("writer %d: %d increments were answered for, and these rows are there: %+v", i, want, rows)
		}
	}
}

// count increments a row that is its own, until ctx ends, and returns how often.
func count(ctx context.Context, t *testing.T, url string, k ledger.RowKey) (made uint64) {
	var s *Store
	for s == nil && ctx.Err() == nil {
		s, _ = Open(ctx, url) // its answers are lost, too
	}
	if s == nil {
		return 0
	}
	defer s.Close()
	l := ledger.New(s)
	l.Wait = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
	for now := (ledger.Row{RowKey: k}); ctx.Err() == nil; {
		next := now
		next.Want.Generation++
		_, _ = cryptorand.Read(next.Nonce[:])
		// To its end: there is an answer.
		out, err := l.Swap(context.WithoutCancel(ctx), []ledger.Change{{Key: k, Expect: now.Nonce, Row: &next}})
		if err != nil || !out[0].Applied {
			t.Errorf("increment %d of %s: %+v, %v: nobody else writes it", next.Want.Generation, k, out, err)
			return made
		}
		made++
		now = next
	}
	return made
}
