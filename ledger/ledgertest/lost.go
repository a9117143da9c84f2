package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/pawlhq/pawl/ledger"
)

var lostTests = []test{
	{name: "Resolved", run: testLostResolved},
	{name: "Alone", run: testLostAlone},
	{name: "Again", run: testLostAgain},
	{name: "Superseded", run: testLostSuperseded},
	{name: "NoAnswer", run: testLostNoAnswer},
	{name: "Random", run: testLostRandom},
}

// plans returns a plan that goes through the faults once.
func plans(faults ...Fault) func(int) Fault {
	return func(call int) Fault {
		if call < len(faults) {
			return faults[call]
		}
		return None
	}
}

func (f *fixture) ledger(plan func(int) Fault) (*ledger.Ledger, *Faulty) {
	faulty := NewFaulty(f.store, plan)
	return ledger.New(faulty), faulty
}

// Whatever became of the call, the answer is the one it would have been.
func testLostResolved(f *fixture) {
	for _, fault := range Faults {
		l, _ := f.ledger(plans(fault))
		k := func(s string) ledger.RowKey { return key(fault.String() + "/" + s) }
		old, gone, held, kept := f.row(k("update")), f.row(k("delete")), f.row(k("held")), f.row(k("kept"))
		f.put(old, gone, held, kept)
		made, next := f.row(k("insert")), f.next(old)
		out, err := l.Swap(f.ctx, []ledger.Change{
			insert(made), update(old, next), remove(gone), // these are right
			insert(f.row(k("held"))), update(f.row(k("none")), f.row(k("none"))), remove(f.row(k("kept"))),
		})
		if err != nil {
			f.Fatalf("%s: %v", fault, err)
		}
		f.applied(out[:3]...)
		f.refused(out[3], held)
		f.refused(out[4], nil)
		f.refused(out[5], kept)
		f.stored(k("insert"), made)
		f.stored(k("update"), next)
		f.stored(k("delete"), nil)
		f.stored(k("held"), held)
		f.stored(k("none"), nil)
		f.stored(k("kept"), kept)
	}
}

// A lone change has no neighbour in its batch to be told by.
func testLostAlone(f *fixture) {
	for _, fault := range Faults {
		l, faulty := f.ledger(func(call int) Fault {
			if call%2 == 0 {
				return fault
			}
			return None
		})
		one := func(c ledger.Change) ledger.Outcome {
			f.Helper()
			if faulty.Calls()%2 == 1 { // whether it was sent again or not, start with the fault
				_, _ = faulty.Swap(f.ctx, nil)
			}
			out, err := l.Swap(f.ctx, []ledger.Change{c})
			if err != nil {
				f.Fatalf("%s: %v", fault, err)
			}
			return out[0]
		}
		r := f.row(key(fault.String()))
		next := f.next(r)
		f.applied(one(insert(r)))
		f.refused(one(insert(f.row(r.RowKey))), r)
		f.applied(one(update(r, next)))
		f.refused(one(update(r, f.next(r))), next)
		f.refused(one(remove(r)), next)
		f.applied(one(remove(next)))
		f.refused(one(update(next, f.next(next))), nil)
	}
}

// Several faults in a row, and Loads that fail too.
func testLostAgain(f *fixture) {
	for i, plan := range [][]Fault{
		{Lost, Lost}, {Unsent, Unsent, Lost}, {Late, Late}, {Late, Lost}, {Later, Later}, {Later, Unsent, Late},
		{Torn, Torn, Torn}, {Unsent, Later}, {Later, Late, Lost, Torn},
	} {
		l, faulty := f.ledger(plans(plan...))
		told := 0
		l.Unclear = func(error) { told++ }
		faulty.Blind(i % 3)
		a, b := f.row(key(fmt.Sprint(i, "a"))), f.row(key(fmt.Sprint(i, "b")))
		f.put(b)
		next := f.next(b)
		out, err := l.Swap(f.ctx, []ledger.Change{insert(a), update(b, next)})
		if err != nil {
			f.Fatal(err)
		}
		f.applied(out...)
		f.stored(a.RowKey, a)
		f.stored(b.RowKey, next)
		if told == 0 {
			f.Errorf("plan %v: Unclear was never called", plan)
		}
	}
}

// The answer was lost, and somebody wrote over the row before the caller
// looked. Then the row that stands there refuses.
func testLostSuperseded(f *fixture) {
	r := f.row(key("k"))
	theirs := f.next(r)
	sneaky := NewFaulty(f.store, plans(Lost))
	l := ledger.New(sneaky)
	l.Unclear = func(error) { f.applied(f.swap(update(r, theirs))...) }
	out, err := l.Swap(f.ctx, []ledger.Change{insert(r)})
	if err != nil {
		f.Fatal(err)
	}
	f.refused(out[0], theirs)
	f.stored(r.RowKey, theirs)
}

// As long as there is no answer there is none, until the caller gives up.
func testLostNoAnswer(f *fixture) {
	l, faulty := f.ledger(func(int) Fault { return Unsent })
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	tried := 0
	l.Unclear = func(error) {
		if tried++; tried == 3 {
			cancel()
		}
	}
	_, err := l.Swap(ctx, []ledger.Change{insert(f.row(key("k")))})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrLost) {
		f.Fatalf("error %v, want context.Canceled and ErrLost", err)
	}
	if faulty.Calls() == 0 {
		f.Fatal("nothing was tried")
	}
	f.stored(key("k"), nil)
}

// A long run of random changes under random faults ends as it would have ended
// without them.
func testLostRandom(f *fixture) {
	random := rand.New(f.random)
	l, _ := f.ledger(func(int) Fault { return Faults[random.IntN(len(Faults))*random.IntN(2)] })
	model := map[ledger.RowKey]*ledger.Row{}
	for range 25 {
		var changes []ledger.Change
		for _, k := range random.Perm(8)[:5] {
			changes = append(changes, f.change(random, key(fmt.Sprint(k)), model))
		}
		out, err := l.Swap(f.ctx, changes)
		if err != nil {
			f.Fatal(err)
		}
		for i, c := range changes {
			was := model[c.Key]
			right := was == nil && c.Expect.IsZero() || was != nil && was.Nonce == c.Expect
			switch {
			case right:
				f.applied(out[i])
				model[c.Key] = c.Row
			case was == nil && c.Row == nil: // gone: by this call or not, nobody can tell
			default:
				f.refused(out[i], was)
			}
		}
	}
	for k := range 8 {
		f.stored(key(fmt.Sprint(k)), model[key(fmt.Sprint(k))])
	}
}

// change draws a change that fits the model, mostly.
func (f *fixture) change(random *rand.Rand, k ledger.RowKey, model map[ledger.RowKey]*ledger.Row) ledger.Change {
	was := model[k]
	if was == nil || random.IntN(5) == 0 {
		was = f.row(k)
	}
	switch random.IntN(4) {
	case 0:
		return insert(f.row(k))
	case 1:
		return remove(was)
	}
	if model[k] == nil {
		return insert(was)
	}
	return update(was, f.next(was))
}
