package ledgertest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pawlhq/pawl/ledger"
)

// ErrLost is what [Faulty] returns in place of an answer.
var ErrLost = errors.New("ledgertest: the answer was lost")

// Fault is what becomes of one call of Swap.
type Fault uint8

// The faults. All but None and Half return ErrLost.
const (
	None   Fault = iota
	Lost         // applied; only the answer is lost
	Unsent       // never applied
	Torn         // the first half of the changes is applied
	Late         // applied after the next Load: the caller looks too early
	Later        // applied after the next Swap: behind what the caller sent again
	Half         // applied; the second half of the outcomes is ErrLost
)

// Faults lists every fault.
var Faults = []Fault{None, Lost, Unsent, Torn, Late, Later, Half}

// String returns the fault's name.
func (f Fault) String() string {
	return [...]string{"none", "lost", "unsent", "torn", "late", "later", "half"}[f]
}

// Faulty is a store whose answers get lost as a plan says, the way they do
// between a client and a server: after a time-out nobody knows whether the
// write landed, or will land yet. It is safe for concurrent use.
type Faulty struct {
	ledger.Store

	mu      sync.Mutex
	plan    func(call int) Fault
	calls   int
	blind   int
	pending []pending
}

type pending struct {
	fault   Fault
	changes []ledger.Change
}

// NewFaulty wraps a store. plan is asked for the fault of each Swap; calls
// count from 0. It is called under a lock.
func NewFaulty(s ledger.Store, plan func(call int) Fault) *Faulty {
	return &Faulty{Store: s, plan: plan}
}

// Blind makes the next n Loads fail with ErrLost.
func (f *Faulty) Blind(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blind = n
}

// Calls returns how many times Swap was called.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Traits are the store's, and Partial.
func (f *Faulty) Traits() ledger.Traits {
	t := ledger.TraitsOf(f.Store)
	t.Partial = true
	return t
}

// Swap is the store's, or what the plan makes of it.
func (f *Faulty) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	f.mu.Lock()
	fault := f.plan(f.calls)
	f.calls++
	f.mu.Unlock()
	land := f.take(Later)
	out, err := f.swap(ctx, fault, changes)
	return out, errors.Join(err, f.apply(ctx, land))
}

func (f *Faulty) swap(ctx context.Context, fault Fault, changes []ledger.Change) ([]ledger.Outcome, error) {
	switch fault {
	case None:
		return f.Store.Swap(ctx, changes)
	case Torn:
		changes = changes[:(len(changes)+1)/2]
		fallthrough
	case Lost:
		if _, err := f.Store.Swap(ctx, changes); err != nil {
			return nil, err
		}
	case Half:
		out, err := f.Store.Swap(ctx, changes)
		for i := len(out) / 2; i < len(out); i++ {
			out[i] = ledger.Outcome{Err: ErrLost}
		}
		return out, err
	case Late, Later:
		f.mu.Lock()
		f.pending = append(f.pending, pending{fault, keep(changes)})
		f.mu.Unlock()
	}
	return nil, ErrLost
}

// Load is the store's. Writes that are late land behind it.
func (f *Faulty) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	f.mu.Lock()
	blind := f.blind > 0
	if blind {
		f.blind--
	}
	f.mu.Unlock()
	if blind {
		return nil, ErrLost
	}
	rows, err := f.Store.Load(ctx, keys)
	return rows, errors.Join(err, f.apply(ctx, f.take(Late)))
}

// take returns the writes that land now.
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

func (f *Faulty) apply(ctx context.Context, land []pending) error {
	for _, p := range land {
		if _, err := f.Store.Swap(ctx, p.changes); err != nil {
			return err
		}
	}
	return nil
}

// keep copies changes that land when the caller has its rows back.
func keep(changes []ledger.Change) []ledger.Change {
	kept := slices.Clone(changes)
	for i := range kept {
		if r := kept[i].Row; r != nil {
			c := *r
			c.History = slices.Clone(r.History)
			kept[i].Row = &c
		}
	}
	return kept
}
