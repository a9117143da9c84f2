package e2e

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
)

var (
	dueRows  = flag.Int("due", 10_000, "due rows that eight sweepers share")
	dueTasks = flag.Int("duetasks", 16, "handlers of each sweeper at a time")
)

type swapCounter struct {
	*postgres.Store
	swaps, refused atomic.Int64
}

func (c *swapCounter) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	out, err := c.Store.Swap(ctx, changes)
	for _, o := range out {
		c.swaps.Add(1)
		if !o.Applied {
			c.refused.Add(1)
		}
	}
	return out, err
}

// Workers that sweep one backlog seldom claim the same row.
func TestSweepers(t *testing.T) {
	const sweepers = 8
	server := servertest.Postgres(t)
	records, err := postgres.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() })
	backlog(t, ledger.NewRows(records), *dueRows)
	var handled atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	began := time.Now()
	var wg sync.WaitGroup
	all := make([]*swapCounter, sweepers)
	for i := range all {
		records, err := postgres.Open(t.Context(), server.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = records.Close() })
		all[i] = &swapCounter{Store: records}
		p, err := pawl.New(pawl.Config{
			Ledger: all[i], Logger: slog.New(slog.DiscardHandler), Concurrency: *dueTasks, SweepInterval: 100 * time.Millisecond,
			Pipelines: []pawl.Pipeline{{
				Name: "noop", Match: pawl.Match{Bucket: "photos"}, Order: pawl.EventOrder,
				Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error {
					if handled.Add(1) == int64(*dueRows) {
						stop()
					}
					return nil
				}),
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var swaps, refused int64
	for _, c := range all {
		swaps, refused = swaps+c.swaps.Load(), refused+c.refused.Load()
	}
	t.Logf("%d rows in %v: %d swaps, %.1f %% rejected", *dueRows, time.Since(began).Round(time.Millisecond), swaps, 100*float64(refused)/float64(swaps))
	if refused*10 > swaps {
		t.Errorf("%d of %d swaps were rejected", refused, swaps)
	}
	if n := handled.Load(); n != int64(*dueRows) {
		t.Errorf("%d rows were handled, want %d", n, *dueRows)
	}
}

// The rows became due at the same instant, which is the hardest case for sharing.
func backlog(t *testing.T, rows ledger.Store, n int) {
	t.Helper()
	at := time.Now().Add(-time.Hour).UTC()
	for from := 0; from < n; from += ledger.DefaultBatch {
		var changes []ledger.Change
		for i := from; i < min(n, from+ledger.DefaultBatch); i++ {
			row := &ledger.Row{
				RowKey: ledger.RowKey{Pipeline: "noop", Bucket: "photos", Key: fmt.Sprintf("in/%d.jpg", i)},
				Want:   ledger.Version{Generation: 1, Kind: event.Created}, CreatedAt: at, UpdatedAt: at,
			}
			_, _ = rand.Read(row.Nonce[:])
			changes = append(changes, ledger.Change{Key: row.RowKey, Row: row})
		}
		if _, err := rows.Swap(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
}
