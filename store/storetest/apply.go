package storetest

import (
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

var applyTests = []test{
	{name: "All", run: testApplyAll, needs: applies},
	{name: "None", run: testApplyNone, needs: applies},
	{name: "RefusedByNothing", run: testApplyRefusedByNothing, needs: applies},
	{name: "Limit", run: testApplyLimit},
	{name: "Rejected", run: testApplyRejected, needs: applies},
	{name: "LostAnswer", run: testApplyLost, needs: applies},
}

// changes returns n insertions, updates and deletions in several spaces. Before the changes, the
// store must have the records in before. After them, it has the records in want, and no record with
// a key in gone.
func (f *fixture) changes(n int) (changes []store.Change, before, want []*store.Record, gone []store.Key) {
	f.Helper()
	for i := range n {
		r := f.record(fmt.Sprint(i))
		r.Space = []string{"file", "entity/e", "quota"}[i%3]
		next := f.next(r)
		switch i % 4 {
		case 0, 1:
			changes, want = append(changes, insert(r)), append(want, r)
			continue
		case 2:
			changes, want = append(changes, update(r, next)), append(want, next)
		case 3:
			changes, gone = append(changes, remove(r)), append(gone, r.Key)
		}
		before = append(before, r)
	}
	f.put(before...)
	return changes, before, want, gone
}

func testApplyAll(f *fixture) {
	if out := f.apply(); len(out) != 0 {
		f.Fatalf("%d outcomes for no change", len(out))
	}
	changes, _, want, gone := f.changes(f.traits.Apply)
	f.applied(f.apply(changes...)...)
	f.stored(want...)
	f.absent(gone...)
}

func testApplyNone(f *fixture) {
	changes, before, _, _ := f.changes(min(f.traits.Apply, 8))
	for i := range changes {
		wrong := keep(changes)
		var by *store.Record
		for _, r := range before {
			if r.Key == changes[i].Key {
				by = r
			}
		}
		wrong[i].Expect = f.nonce() // an update of a missing record
		for j, o := range f.apply(wrong...) {
			switch {
			case i == j:
				f.refused(o, by)
			case o != store.Outcome{}:
				f.Fatalf("change %d has the outcome %s, want none, because change %d was refused", j, describe(&o), i)
			}
		}
		f.stored(before...)
		for _, c := range changes {
			if c.Expect.IsZero() {
				f.absent(c.Key)
			}
		}
	}
	f.applied(f.apply(changes...)...)
}

func testApplyRefusedByNothing(f *fixture) {
	r, other := f.record("k"), f.record("other")
	out := f.apply(remove(r), insert(other))
	f.refused(out[0], nil)
	f.absent(r.Key, other.Key)
	f.put(r)
	f.refused(f.apply(insert(other), insert(f.record("k")))[1], r)
	f.refused(f.apply(insert(other), store.Change{Key: key("none")})[1], nil)
	f.absent(other.Key)
}

func testApplyLimit(f *fixture) {
	changes := make([]store.Change, f.traits.Apply+1)
	keys := make([]store.Key, len(changes))
	for i := range changes {
		keys[i] = key(fmt.Sprint(i))
		changes[i] = insert(f.record(keys[i].Name))
	}
	if out, err := f.store.Apply(f.ctx, changes); !errors.Is(err, store.ErrRejected) {
		f.Fatalf("Apply of %d changes: %v, error %v, want ErrRejected", len(changes), out, err)
	}
	f.absent(keys...)
}

func testApplyRejected(f *fixture) {
	good := f.record("good")
	for name, c := range f.unacceptable() {
		if _, err := f.store.Apply(f.ctx, []store.Change{insert(good), c}); !errors.Is(err, store.ErrRejected) {
			f.Errorf("%s: error %v, want ErrRejected", name, err)
		}
	}
	f.absent(good.Key)
}

func testApplyLost(f *fixture) {
	for _, fault := range Faults {
		faulty := NewFaulty(f.store, func(call int) Fault {
			if call == 0 {
				return fault
			}
			return None
		})
		a, b := f.record(fault.String()+"/a"), f.record(fault.String()+"/b")
		changes := []store.Change{insert(a), insert(b)}
		_, err := faulty.Apply(f.ctx, changes)
		if (fault == None || fault == Half) != (err == nil) {
			f.Fatalf("%s: error %v", fault, err)
		}
		for range 2 { // the change of Late lands after the first Load
			found, err := load(f.ctx, faulty, a.Key, b.Key)
			if err != nil || len(found) == 1 {
				f.Fatalf("%s: %d records of 2, error %v", fault, len(found), err)
			}
		}
		if _, err := faulty.Apply(f.ctx, changes); err != nil {
			f.Fatal(err)
		}
		f.stored(a, b)
	}
}
