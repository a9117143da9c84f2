package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

var completeTests = []test{
	{name: "Declared", run: testCompleteDeclared},
	{name: "ByFence", run: testCompleteByFence, needs: transactions},
	{name: "Race", run: testCompleteRace, needs: transactions},
}

func transactions(h *Harness) bool { return h.Complete != nil }

func testCompleteDeclared(f *fixture) {
	if f.traits.Transactions != transactions(f.harness) {
		f.Errorf("the traits declare transactions: %v; the harness has Complete: %v", f.traits.Transactions, transactions(f.harness))
	}
}

// claimed puts a row in that was just claimed.
func (f *fixture) claimed(k ledger.RowKey) (*ledger.Row, ledger.Claim) {
	f.Helper()
	p := ledger.DefaultPolicy()
	row, claim, why := f.row(k).Claim("w", &p, t0)
	if why != ledger.Granted {
		f.Fatal(why)
	}
	f.put(&row)
	return &row, claim
}

// complete completes a claim in a transaction.
func (f *fixture) complete(claim ledger.Claim) (*ledger.Completion, error) {
	c := &ledger.Completion{Store: bare(f.store), Claim: claim, Read: ledger.Read{Kind: event.Created}, Now: t0.Add(time.Second), Nonce: f.nonce()}
	return c, f.harness.Complete(f.ctx, c.Store, c)
}

// A renewal does not prevent a completion. An attempt that lost its lease, or has
// completed, cannot complete.
func testCompleteByFence(f *fixture) {
	p := ledger.DefaultPolicy()
	row, claim := f.claimed(key("k"))
	renewed, ok := row.Renew(&claim, &p, t0)
	if !ok {
		f.Fatal("the claim cannot be renewed")
	}
	renewed.Nonce = f.nonce()
	f.applied(f.swap(update(row, &renewed))...)
	c, err := f.complete(claim)
	if err != nil {
		f.Fatal(err)
	}
	done := f.load(key("k"))
	if !done.Settled() || done.Nonce != c.Nonce || !done.CommittedBy(&claim) {
		f.Errorf("completed: %+v", done)
	}
	if _, err := f.complete(claim); !errors.Is(err, ledger.ErrNotHeld) {
		f.Errorf("completed twice: %v", err)
	}
	_, lost := f.claimed(key("lost"))
	lost.Fence--
	if _, err := f.complete(lost); !errors.Is(err, ledger.ErrNotHeld) {
		f.Errorf("completed without the lease: %v", err)
	}
}

// A completion takes effect beside other changes of the row, which renewals and new
// events make, and it overwrites none of them.
func testCompleteRace(f *fixture) {
	const rounds, racers = 30, 4
	handles := f.handles()
	for round := range rounds {
		k := key(fmt.Sprint(round))
		_, claim := f.claimed(k)
		var wg sync.WaitGroup
		var raised [racers]uint64
		completed := make(chan struct{})
		for i := range racers {
			m := newMaker(fmt.Sprintf("%d in round %d of %s", i, round, f.Name()))
			wg.Go(func() {
				for over := false; !over; {
					select {
					case <-completed:
						over = true // one more, after the completion
					default:
					}
					if err := modify(f.ctx, handles[i%2], k, func(r *ledger.Row) ledger.Change { return update(r, m.next(r)) }); err != nil {
						f.Error(err)
						return
					}
					raised[i]++
				}
			})
		}
		_, err := f.complete(claim)
		close(completed)
		wg.Wait()
		if err != nil {
			f.Errorf("round %d: a change of the row prevents its completion: %v", round, err)
		}
		var sum uint64
		for _, n := range raised {
			sum += n
		}
		if row := f.load(k); row.Want.Generation != sum+1 || err == nil && !row.CommittedBy(&claim) {
			f.Errorf("round %d: %d changes were made, and the row has %d: %+v", round, sum, row.Want.Generation-1, row)
		}
	}
}
