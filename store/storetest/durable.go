package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/store"
)

var cancelTests = []test{
	{name: "Before", run: testCancelledBefore},
	{name: "During", run: testCancelledDuring},
}

func testCancelledBefore(f *fixture) {
	r := f.record("k")
	f.put(r)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	for i, c := range []store.Change{insert(f.record("new")), update(r, f.next(r)), remove(r)} {
		if _, err := f.store.Swap(ctx, []store.Change{c}); err == nil {
			f.Errorf("Swap of change %d returned no error", i)
		}
		if _, err := f.store.Apply(ctx, []store.Change{c}); err == nil {
			f.Errorf("Apply of change %d returned no error", i)
		}
	}
	if _, err := f.store.Load(ctx, []store.Key{r.Key}); !errors.Is(err, context.Canceled) {
		f.Errorf("Load: error %v, want context.Canceled", err)
	}
	if _, err := f.store.Due(ctx, store.DueRange{Space: space, Before: t0, Limit: 1}); !errors.Is(err, context.Canceled) {
		f.Errorf("Due: error %v, want context.Canceled", err)
	}
	if _, err := scan(ctx, f.store, store.Range{Space: space}); !errors.Is(err, context.Canceled) {
		f.Errorf("Scan: error %v, want context.Canceled", err)
	}
	f.stored(r)
	f.absent(key("new"))
}

func testCancelledDuring(f *fixture) {
	for round := range 40 {
		n, call := min(50, f.traits.Batch), f.store.Swap
		if round%2 == 1 && f.traits.Apply > 0 {
			n, call = f.traits.Apply, f.store.Apply
		}
		records, changes, keys := make([]*store.Record, n), make([]store.Change, n), make([]store.Key, n)
		for i := range records {
			records[i] = f.record(fmt.Sprintf("%d/%d", round, i))
			changes[i], keys[i] = insert(records[i]), records[i].Key
		}
		ctx, cancel := context.WithCancel(f.ctx)
		var wg sync.WaitGroup
		wg.Go(cancel)
		out, err := call(ctx, changes)
		wg.Wait()
		found, loadErr := load(f.ctx, f.store, keys...)
		if loadErr != nil {
			f.Fatal(loadErr)
		}
		for i, r := range records {
			got := found[r.Key]
			if got != nil && !equal(got, r) || got == nil && err == nil && out[i].Applied || got != nil && errors.Is(err, store.ErrThrottled) {
				f.Fatalf("record %s is stored as %s: outcomes %v, error %v", show(r), show(got), out, err)
			}
		}
	}
	f.put(f.record("after"))
}

var durableTests = []test{
	{name: "Reopen", run: testReopen, needs: func(f *fixture) bool { return !f.traits.Volatile }},
	{name: "OtherHandle", run: testOtherHandle, needs: shared},
}

func testReopen(f *fixture) {
	gone := f.record("gone")
	f.put(gone)
	var records []*store.Record
	for round := range 4 {
		s, err := f.open()
		if err != nil {
			f.Fatal(err)
		}
		r := f.at(fmt.Sprint(round), time.Duration(round)*time.Second)
		changes := []store.Change{insert(r)}
		if round == 1 {
			changes = append(changes, remove(gone))
		}
		out, err := send(f.ctx, s, changes)
		if err != nil {
			f.Fatal(err)
		}
		f.applied(out...)
		if err := s.Close(); err != nil {
			f.Fatal(err)
		}
		records = append(records, r)
	}
	f.store = f.handle()
	f.stored(records...)
	f.scans(store.Range{Space: space}, records...)
	f.due(store.DueRange{Space: space, Before: records[3].Due, Limit: 10}, records...)
	f.refused(f.swap(insert(f.record("2")))[0], records[2])
	f.applied(f.swap(update(records[2], f.next(records[2])))...)
}

func testOtherHandle(f *fixture) {
	other := f.handle()
	r := f.record("k")
	f.put(r)
	for range 10 {
		f.storedIn(other, r)
		n := f.next(r)
		out, err := send(f.ctx, other, []store.Change{update(r, n)})
		if err != nil {
			f.Fatal(err)
		}
		f.applied(out...)
		f.stored(n)
		r = n
	}
}

var traitsTests = []test{{name: "Sound", run: testTraits}}

func testTraits(f *fixture) {
	t := f.traits
	switch {
	case t != f.store.Traits():
		f.Error("the traits differ from one call to the next")
	case t.Batch < 1 || t.Swaps < 1 || t.Apply < 0 || t.DueLag < 0 || t.ScanLag < 0:
		f.Errorf("a limit is below its minimum: %+v", t)
	case t.Body < 1000 || t.Body > store.MaxBody || t.Name < 1100 || t.Name > store.MaxName || t.Apply > store.MaxApply:
		f.Errorf("no caller expects such limits: %+v", t)
	}
}
