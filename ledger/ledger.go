package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
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
func New(s Store) *Ledger { return &Ledger{Store: s, Wait: sleep, traits: TraitsOf(s)} }

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
// Swap keeps at it until ctx ends, or the store says [ErrUnusable] or [ErrRejected],
// which no retry changes. Then, and only then, it returns an error, and
// nothing is known of the changes whose Outcome has one; the others are answered.
func (l *Ledger) Swap(ctx context.Context, changes []Change) ([]Outcome, error) {
	s := &swap{Ledger: l, changes: changes, out: make([]Outcome, len(changes))}
	all := make([]int, len(changes))
	for i := range all {
		all[i] = i
	}
	open, err := s.send(ctx, all, false)
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 20*time.Millisecond, 5*time.Second
	for len(open) > 0 && !errors.Is(err, ErrUnusable) && !errors.Is(err, ErrRejected) {
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
	return s.out, err
}

// swap is a call of Ledger.Swap under way.
type swap struct {
	*Ledger
	changes []Change
	out     []Outcome
}

// resolve answers the open changes it can, sends those again that have not
// landed, and returns the ones still open with the reason. Without an error there
// are none.
func (s *swap) resolve(ctx context.Context, open []int) ([]int, error) {
	keys := make([]RowKey, len(open))
	for i, c := range open {
		keys[i] = s.changes[c].Key
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
		o, known := classify(&s.changes[i], current[s.changes[i].Key])
		if !known {
			again = append(again, i)
			continue
		}
		s.out[i] = o
	}
	return s.send(ctx, again, true)
}

// send sends changes, in batches that the store takes, and returns those without
// an answer with the reason of the last of them.
func (s *swap) send(ctx context.Context, which []int, again bool) (open []int, err error) {
	for part := range slices.Chunk(which, s.traits.Batch) {
		batch := make([]Change, len(part))
		for i, c := range part {
			batch[i] = s.changes[c]
		}
		answers, failed := s.Store.Swap(ctx, batch)
		if failed == nil && len(answers) != len(batch) {
			failed = fmt.Errorf("ledger: %d outcomes for %d changes", len(answers), len(batch))
		}
		if failed != nil {
			open, err = append(open, part...), failed
			continue
		}
		for i, c := range part {
			if answers[i].Err != nil {
				open, err = append(open, c), answers[i].Err
				continue
			}
			s.out[c] = s.answer(&s.changes[c], answers[i], again)
		}
	}
	return open, err
}

// answer is what an outcome tells of a change. The refusal of one that is sent
// again may be due to its first copy, which landed in between.
func (s *swap) answer(c *Change, o Outcome, again bool) Outcome {
	if again && !o.Applied {
		if first, known := classify(c, o.Current); known {
			return first
		}
	}
	return o
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

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
