package ledgertest_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/ledgertest"
	"github.com/pawlhq/pawl/ledger/memledger"
)

// Stores that promise less pass the suite if they say so. TestMutants has the
// same ones without a word.
func TestTraits(t *testing.T) {
	for name, make := range map[string]func(*memledger.Store) ledger.Store{
		"half answers":  halfAnswering(ledger.Traits{Partial: true}),
		"a lag of Due":  lagging(time.Minute, ledger.Traits{DueLag: time.Minute}),
		"no order":      shuffling(ledger.Traits{DueUnordered: true, ScanUnordered: true}),
		"small batches": halfAnswering(ledger.Traits{Partial: true, Batch: 7, Swaps: 1}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledgertest.Run(t, ledgertest.Harness{
				New: func(*testing.T) ledgertest.Open {
					return func() (ledger.Store, error) { return make(memledger.New()), nil }
				},
				Registers: true, Pass: pass,
			})
		})
	}
}

// passed is how much time has passed for stores that lag.
var passed atomic.Int64

func pass(_ context.Context, d time.Duration) { passed.Add(int64(d)) }

// declaring is a store with other traits.
type declaring struct {
	*memledger.Store
	traits ledger.Traits
}

func (s declaring) Traits() ledger.Traits {
	s.traits.Volatile = true
	return s.traits
}

// half is a store that leaves half of its outcomes without an answer, whether
// the change was applied or not.
type half struct {
	declaring
	mu     *sync.Mutex
	random *rand.Rand
}

func halfAnswering(traits ledger.Traits) func(*memledger.Store) ledger.Store {
	return func(s *memledger.Store) ledger.Store {
		return half{declaring{s, traits}, &sync.Mutex{}, rand.New(rand.NewPCG(1, 2))}
	}
}

func (s half) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]ledger.Outcome, len(changes))
	for i := range changes {
		fate := s.random.IntN(4)
		if fate == 3 {
			out[i].Err = ledgertest.ErrLost
			continue
		}
		one, err := s.Store.Swap(ctx, changes[i:i+1])
		if err != nil {
			return nil, err
		}
		if out[i] = one[0]; fate == 2 {
			out[i] = ledger.Outcome{Err: ledgertest.ErrLost}
		}
	}
	return out, nil
}

// late is a store whose Due answers from an old picture.
type late struct {
	declaring
	lag     time.Duration
	mu      *sync.Mutex
	picture *memledger.Store
	behind  *[]written
}

type written struct {
	at     int64 // by passed
	change ledger.Change
}

func lagging(lag time.Duration, traits ledger.Traits) func(*memledger.Store) ledger.Store {
	return func(s *memledger.Store) ledger.Store {
		return late{declaring{s, traits}, lag, &sync.Mutex{}, memledger.New(), &[]written{}}
	}
}

func (s late) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.Store.Swap(ctx, changes)
	for i := range out {
		if c := changes[i]; out[i].Applied {
			if c.Row != nil {
				row := *c.Row
				c.Row = &row
			}
			*s.behind = append(*s.behind, written{passed.Load(), c})
		}
	}
	return out, err
}

func (s late) Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(*s.behind) > 0 && passed.Load()-(*s.behind)[0].at >= int64(s.lag) {
		if _, err := s.picture.Swap(ctx, []ledger.Change{(*s.behind)[0].change}); err != nil {
			return nil, err
		}
		*s.behind = (*s.behind)[1:]
	}
	return s.picture.Due(ctx, pipeline, before, limit)
}

// shuffled is a store that answers in no order.
type shuffled struct{ declaring }

func shuffling(traits ledger.Traits) func(*memledger.Store) ledger.Store {
	return func(s *memledger.Store) ledger.Store { return shuffled{declaring{s, traits}} }
}

func (s shuffled) Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	rows, err := s.Store.Due(ctx, pipeline, before, 1<<30)
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows[:min(limit, len(rows))], err
}

func (s shuffled) Scan(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		var rows []ledger.Row
		for row, err := range s.Store.Scan(ctx, r) {
			if err != nil {
				yield(row, err)
				return
			}
			rows = append(rows, row)
		}
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
			if ctx.Err() != nil {
				yield(ledger.Row{}, ctx.Err())
				return
			}
		}
	}
}

func (s shuffled) Pipelines(ctx context.Context) ([]string, error) {
	return ledger.Pipelines(ctx, s.Store)
}
