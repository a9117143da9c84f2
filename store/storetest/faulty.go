package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pawlhq/pawl/store"
)

// ErrLost is the error that [Faulty] returns instead of an answer.
var ErrLost = fmt.Errorf("storetest: the answer was lost: %w", store.ErrUnclear)

var errThrottled = fmt.Errorf("storetest: %w", store.ErrThrottled)

// Fault is a fault of one call of Swap or Apply.
type Fault uint8

// Faults. A call returns ErrLost, except with None, Half and Throttled.
const (
	None      Fault = iota
	Lost            // the call is executed, but its answer is lost
	Unsent          // the call is not executed
	Torn            // a Swap makes only the first half of the changes, an Apply makes all
	Late            // the call is executed after the next Load
	Later           // the call is executed after the next Swap or Apply
	Half            // the call is executed; ErrLost replaces half of the outcomes of a Swap, or all of an Apply
	Throttled       // the call is not executed, and returns store.ErrThrottled
)

// Faults lists all faults.
var Faults = []Fault{None, Lost, Unsent, Torn, Late, Later, Half, Throttled}

func (f Fault) String() string {
	return [...]string{"none", "lost", "unsent", "torn", "late", "later", "half", "throttled"}[f]
}

// Faulty is a store that loses answers according to a plan. It is safe for concurrent use.
type Faulty struct {
	store.Store

	mu      sync.Mutex
	plan    func(call int) Fault
	calls   int
	blind   int
	pending []pending
}

type pending struct {
	fault   Fault
	call    call
	changes []store.Change
}

type call func(context.Context, []store.Change) ([]store.Outcome, error)

// NewFaulty wraps a store. It calls plan for each Swap and Apply, with the number of the call from
// 0. Calls of plan do not overlap.
func NewFaulty(s store.Store, plan func(call int) Fault) *Faulty {
	return &Faulty{Store: s, plan: plan}
}

// Blind makes the next n Loads fail with ErrLost.
func (f *Faulty) Blind(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blind = n
}

// Calls returns the number of calls of Swap and Apply.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Traits returns the store's traits, with Partial.
func (f *Faulty) Traits() store.Traits {
	t := f.Store.Traits()
	t.Partial = true
	return t
}

// Swap calls the store's Swap with the planned fault.
func (f *Faulty) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	return f.write(ctx, f.Store.Swap, changes, (len(changes)+1)/2, len(changes)/2)
}

// Apply calls the store's Apply with the planned fault.
func (f *Faulty) Apply(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	return f.write(ctx, f.Store.Apply, changes, len(changes), 0)
}

// torn is the number of changes that Torn makes, and half the number of outcomes that Half returns.
func (f *Faulty) write(ctx context.Context, do call, changes []store.Change, torn, half int) ([]store.Outcome, error) {
	f.mu.Lock()
	fault := f.plan(f.calls)
	f.calls++
	f.mu.Unlock()
	land := f.take(Later)
	out, err := f.inject(ctx, fault, do, changes, torn, half)
	return out, errors.Join(err, f.land(ctx, land))
}

func (f *Faulty) inject(ctx context.Context, fault Fault, do call, changes []store.Change, torn, half int) ([]store.Outcome, error) {
	switch fault {
	case None:
		return do(ctx, changes)
	case Throttled:
		return nil, errThrottled
	case Torn:
		changes = changes[:torn]
		fallthrough
	case Lost:
		if _, err := do(ctx, changes); err != nil {
			return nil, err
		}
	case Half:
		out, err := do(ctx, changes)
		for i := half; i < len(out); i++ {
			out[i] = store.Outcome{Err: ErrLost}
		}
		return out, err
	case Late, Later:
		f.mu.Lock()
		f.pending = append(f.pending, pending{fault, do, keep(changes)})
		f.mu.Unlock()
	}
	return nil, ErrLost
}

// Load calls the store's Load, and then executes Late calls.
func (f *Faulty) Load(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	f.mu.Lock()
	blind := f.blind > 0
	if blind {
		f.blind--
	}
	f.mu.Unlock()
	if blind {
		return nil, ErrLost
	}
	records, err := f.Store.Load(ctx, keys)
	return records, errors.Join(err, f.land(ctx, f.take(Late)))
}

func (f *Faulty) take(fault Fault) (land []pending) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = slices.DeleteFunc(f.pending, func(p pending) bool {
		if p.fault == fault {
			land = append(land, p)
		}
		return p.fault == fault
	})
	return land
}

func (f *Faulty) land(ctx context.Context, land []pending) error {
	for _, p := range land {
		if _, err := p.call(ctx, p.changes); err != nil {
			return ErrLost // ErrThrottled would belong to another call
		}
	}
	return nil
}

// The caller may reuse its records.
func keep(changes []store.Change) []store.Change {
	kept := slices.Clone(changes)
	for i := range kept {
		if r := kept[i].Next; r != nil {
			c := *r
			kept[i].Next = &c
		}
	}
	return kept
}
