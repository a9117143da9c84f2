package ledgertest_test

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/memledger"
)

// Stores that are right most of the time.

// sometimes makes a store of which every fourth Swap is f's.
func sometimes(f swapFunc) func(*memledger.Store) ledger.Store {
	var calls atomic.Int64
	return swapping(func(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
		if calls.Add(1)%4 > 0 {
			return s.Swap(ctx, changes)
		}
		return f(ctx, s, changes)
	})
}

// loseApplied answers as Swap would, and does nothing.
func loseApplied(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
	fits := judge(ctx, s, changes)
	out := make([]ledger.Outcome, len(changes))
	for i, c := range changes {
		rows, err := s.Load(ctx, []ledger.RowKey{c.Key})
		if err != nil {
			return nil, err
		}
		if out[i].Applied = fits[i]; !fits[i] && len(rows) > 0 {
			out[i].Current = &rows[0]
		}
	}
	return out, nil
}

// applyRefused answers as Swap does, and then applies everything.
func applyRefused(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
	out, err := s.Swap(ctx, changes)
	if err != nil {
		return nil, err
	}
	_, err = ignoreNonce(ctx, s, changes)
	return out, err
}

// oldRows answers every fourth Load with rows of some Swaps ago, as a replica
// that lags does.
type oldRows struct {
	*memledger.Store

	mu           sync.Mutex
	swaps, loads int
	old          map[ledger.RowKey]ledger.Row
}

// age counts a Swap, and remembers the rows there are before every fourth.
func (s *oldRows) age(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.swaps++; s.swaps%4 > 0 {
		return nil
	}
	s.old = map[ledger.RowKey]ledger.Row{}
	for r, err := range s.Scan(ctx, ledger.Range{}) {
		if err != nil {
			return err
		}
		s.old[r.RowKey] = r
	}
	return nil
}

func (s *oldRows) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	if err := s.age(ctx); err != nil {
		return nil, err
	}
	return s.Store.Swap(ctx, changes)
}

func (s *oldRows) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loads++; s.loads%4 > 0 {
		return s.Store.Load(ctx, keys)
	}
	var rows []ledger.Row
	for _, k := range keys {
		if r, ok := s.old[k]; ok {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// oldNonces compares with rows of some Swaps ago, and writes over what is there
// now.
type oldNonces struct{ oldRows }

func (s *oldNonces) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	if err := s.age(ctx); err != nil {
		return nil, err
	}
	out := make([]ledger.Outcome, len(changes))
	for i, c := range changes {
		swap := s.Store.Swap
		if s.fitted(c) {
			swap = func(ctx context.Context, c []ledger.Change) ([]ledger.Outcome, error) {
				return ignoreNonce(ctx, s.Store, c)
			}
		}
		one, err := swap(ctx, []ledger.Change{c})
		if err != nil {
			return nil, err
		}
		out[i] = one[0]
	}
	return out, nil
}

// fitted says whether a change would have been right some Swaps ago.
func (s *oldNonces) fitted(c ledger.Change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.old[c.Key]
	return ok && r.Nonce == c.Expect
}

func (s *oldNonces) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	return s.Store.Load(ctx, keys)
}
