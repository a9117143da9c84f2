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

// Ledger is a Store that resolves unclear answers.
type Ledger struct {
	Store
	// Unclear, if set, is called for each unclear answer.
	Unclear func(err error)
	// Wait waits before a retry, or until ctx ends. Simulations replace it.
	Wait func(ctx context.Context, d time.Duration) error

	traits Traits
}

// New returns a ledger over a store.
func New(s Store) *Ledger { return &Ledger{Store: s, Wait: process.Sleep, traits: TraitsOf(s)} }

// Traits returns the store's traits, with Partial false.
func (l *Ledger) Traits() Traits {
	t := l.traits
	t.Partial = false
	return t
}

// Swap commits changes. After an unclear answer, it loads the rows and compares nonces. A row with
// the nonce of the change shows that the change landed. A row with the expected nonce shows that it
// has not, and Swap sends it again. Any other row refuses the change, unless the row has the
// caller's own fence: then the change had landed before.
//
// A lost request may land even later. The store then refuses it, because its expected nonce is
// outdated. An exception is the request that creates an object's row, if that row was deleted
// meanwhile: the old row comes back with an expired lease, and another attempt processes it.
//
// Swap retries until ctx ends or the store returns [ErrUnusable], and then returns an error. A
// change whose Outcome has an Err other than [ErrRejected] has an unknown result.
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

type swap struct {
	*Ledger
	changes []Change
	out     []Outcome
	// ambiguous: an earlier request had no clear answer, and may have landed.
	ambiguous []bool
	rejected  error
}

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

// errChangedTwice: the current row would not refuse the change.
var errChangedTwice = fmt.Errorf("the row changed twice: %w", store.ErrThrottled)

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

// The refusal of an ambiguous change may come from its own first request.
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

// known is false if the change has not landed and may be sent again.
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
