package ledgertest

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawlhq/pawl/ledger"
)

var cancelTests = []test{
	{name: "Before", run: testCancelledBefore},
	{name: "During", run: testCancelledDuring},
}

// A call whose context is done already does nothing and says so.
func testCancelledBefore(f *fixture) {
	r := f.row(key("k"))
	f.put(r)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	for i, c := range []ledger.Change{insert(f.row(key("new"))), update(r, f.next(r)), remove(r)} {
		if _, err := f.store.Swap(ctx, []ledger.Change{c}); err == nil {
			f.Errorf("Swap of change %d returned no error", i)
		}
	}
	if _, err := f.store.Load(ctx, []ledger.RowKey{key("k")}); err == nil {
		f.Error("Load returned no error")
	}
	if _, err := f.store.Due(ctx, "p", t0, 1); err == nil {
		f.Error("Due returned no error")
	}
	for _, err := range f.store.Scan(ctx, ledger.Range{}) {
		if err == nil {
			f.Error("Scan went on")
		}
	}
	f.stored(key("k"), r)
	f.stored(key("new"), nil)
}

// A call cancelled under way has a true answer or none, and the store works on.
func testCancelledDuring(f *fixture) {
	const rounds, n = 20, 50
	for round := range rounds {
		rows := make([]*ledger.Row, n)
		changes := make([]ledger.Change, n)
		for i := range rows {
			rows[i] = f.row(key(fmt.Sprintf("%d/%d", round, i)))
			changes[i] = insert(rows[i])
		}
		ctx, cancel := context.WithCancel(f.ctx)
		var wg sync.WaitGroup
		wg.Go(cancel)
		out, _ := f.store.Swap(ctx, changes)
		wg.Wait()
		for i, r := range rows {
			got := f.load(r.RowKey)
			switch {
			case got != nil:
				f.same(got, r)
			case i < len(out) && out[i].Applied:
				f.Fatalf("row %s was reported as applied and is not there", r.RowKey)
			}
		}
	}
	f.put(f.row(key("after")))
}
