package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/store"
)

// Ledger is a Store whose swaps always have a clear answer: applied, or refused
// by the row that stands there now.
type Ledger struct {
	Store
	// Unclear, when set, is told of each request of a swap, or of a look at what
	// became of it, that had no clear answer.
	Unclear func(err error)
	// Wait passes the time between two tries. It returns early, with the
	// cause, when ctx ends. A simulation has a time of its own.
	Wait func(ctx context.Context, d time.Duration) error

	traits Traits
}

// New returns a ledger over a store.
func New(s Store) *Ledger { return &Ledger{Store: s, Wait: process.Sleep, traits: TraitsOf(s)} }

// Traits are those of the store, but for Partial.
func (l *Ledger) Traits() Traits {
	t := l.traits
	t.Partial = false
	return t
}

// Swap is the store's, but where an answer is unclear it loads the rows and
// compares. Our nonce means that the change landed; the expected nonce, that it
// has not, and it is sent again; anything else refuses it. A caller who finds its
// own fence in the refusing row knows that the change had landed before another
// worker superseded it.
//
// A copy whose answer was lost may land later still. Its nonce refuses it, unless
// it is of a first row and that row has been deleted meanwhile: then the old row
// comes back, with a lease that has long expired, and is worked on once more.
//
// A batch may be larger than the store's: it is sent in parts.
//
// A change that the store was too busy for is sent again without a look. One that matches
// [ErrRejected] never lands: its Outcome says so, and the others are not affected.
//
// Swap tries until ctx ends or the store says [ErrUnusable]. Then nothing is known of the
// changes whose Outcome has an Err. Swap returns an error if any Outcome has one.
func (l *Ledger) Swap(ctx context.Context, changes []Change) ([]Outcome, error) {
	s := &swap{Ledger: l, changes: changes, out: make([]Outcome, len(changes)), ambiguous: make([]bool, len(changes))}
	all := make([]int, len(changes))
	for i := range all {
		all[i] = i
	}
	open, err := s.send(ctx, all)
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 20*time.Millisecond, 5*time.Second
	for len(open) > 0 && !errors.Is(err, ErrUnusable) {
		if l.Unclear != nil {
			l.Unclear(err)
		}
		if stopped := l.Wait(ctx, wait.NextBackOff()); stopped != nil {
			err = fmt.Errorf("ledger: no answer to %d changes: %w (last: %w)", len(open), stopped, err)
			break
		}
		open, err = s.resolve(ctx, open)
	}
	for _, i := range open {
		s.out[i] = Outcome{Err: err}
	}
	return s.out, errors.Join(err, s.rejected)
}

// swap is a call of Ledger.Swap under way.
type swap struct {
	*Ledger
	changes []Change
	out     []Outcome
	// doubt: a copy of the change had no clear answer, and may have landed.
	ambiguous []bool
	rejected  error // of the last change that never lands
}

// resolve answers the open changes it can, sends those again that have not
// landed, and returns the ones still open with the reason. Without an error there
// are none.
func (s *swap) resolve(ctx context.Context, open []int) ([]int, error) {
	var keys []RowKey
	for _, i := range open {
		if s.ambiguous[i] {
			keys = append(keys, s.changes[i].Key)
		}
	}
	if len(keys) == 0 {
		return s.send(ctx, open)
	}
	rows, err := s.Load(ctx, keys)
	if err != nil {
		return open, err
	}
	current := make(map[RowKey]*Row, len(rows))
	for i := range rows {
		current[rows[i].RowKey] = &rows[i]
	}
	var again []int
	for _, i := range open {
		known := false
		if s.ambiguous[i] {
			s.out[i], known = classify(&s.changes[i], current[s.changes[i].Key])
		}
		if !known {
			again = append(again, i)
		}
	}
	return s.send(ctx, again)
}

// errChangedTwice is the answer to a change that the current row does not refuse any more.
var errChangedTwice = fmt.Errorf("the row changed twice: %w", store.ErrThrottled)

// send sends changes, in batches that the store takes, and returns those without
// an answer with the reason of the last of them.
func (s *swap) send(ctx context.Context, which []int) (open []int, err error) {
	for part := range slices.Chunk(which, s.traits.Batch) {
		batch := make([]Change, len(part))
		for i, c := range part {
			batch[i] = s.changes[c]
		}
		answers, failed := s.Store.Swap(ctx, batch)
		if failed == nil && len(answers) != len(batch) {
			failed = fmt.Errorf("ledger: %d outcomes for %d changes", len(answers), len(batch))
		}
		for i, c := range part {
			why := failed
			if failed == nil {
				why = s.applyAnswer(c, answers[i])
			}
			switch {
			case why == nil:
			case errors.Is(why, ErrRejected):
				s.out[c], s.rejected = Outcome{Err: why}, why
			default:
				s.ambiguous[c] = s.ambiguous[c] || !errors.Is(why, store.ErrThrottled)
				open, err = append(open, c), why
			}
		}
	}
	return open, err
}

// applyAnswer takes the answer to a change, or returns why it is none. A change in doubt may
// be refused by its own first copy.
func (s *swap) applyAnswer(c int, o Outcome) error {
	switch first, known := classify(&s.changes[c], o.Current); {
	case o.Err != nil:
		return o.Err
	case o.Applied:
	case !known:
		return errChangedTwice
	case s.ambiguous[c]:
		o = first
	}
	s.out[c] = o
	return nil
}

// classify compares the row that stands with a change of unknown result. known
// is false where the change has not landed, and may be sent again.
func classify(c *Change, now *Row) (o Outcome, known bool) {
	switch {
	case c.Row == nil && now == nil:
		return Outcome{Applied: true}, true
	case c.Row != nil && now != nil && now.Nonce == c.Row.Nonce:
		return Outcome{Applied: true}, true
	case now == nil && c.Expect.IsZero(), now != nil && now.Nonce == c.Expect:
		return Outcome{}, false
	}
	return Outcome{Current: now}, true
}
