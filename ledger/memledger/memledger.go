// Package memledger keeps a ledger in memory, for tests, demonstrations and
// pipelines that may forget everything when the process ends.
package memledger

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// Store is a [ledger.Store] in memory. Its answers depend on nothing but the
// calls made, so a test that repeats the calls sees the same answers.
type Store struct {
	mu   sync.Mutex
	rows map[ledger.RowKey]*entry
	due  map[string]*agenda // by pipeline

	registers map[string]ledger.Register
	writes    int // of registers
}

var (
	_ ledger.Store     = (*Store)(nil)
	_ ledger.Declarer  = (*Store)(nil)
	_ ledger.Registers = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{
		rows: make(map[ledger.RowKey]*entry), due: make(map[string]*agenda), registers: make(map[string]ledger.Register),
	}
}

// Swap applies the changes. It fails only when ctx is done already.
func (s *Store) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]ledger.Outcome, len(changes))
	for i := range changes {
		out[i] = s.apply(&changes[i])
	}
	return out, nil
}

func (s *Store) apply(c *ledger.Change) ledger.Outcome {
	e := s.rows[c.Key]
	switch {
	case e == nil && !c.Expect.IsZero():
		return ledger.Outcome{}
	case e != nil && e.row.Nonce != c.Expect:
		current := own(&e.row)
		return ledger.Outcome{Current: &current}
	}
	if e != nil {
		s.agenda(c.Key.Pipeline).remove(e)
		delete(s.rows, c.Key)
	}
	if c.Row != nil {
		e = &entry{row: own(c.Row), due: c.Row.Due()}
		e.row.RowKey = c.Key
		s.rows[c.Key] = e
		s.agenda(c.Key.Pipeline).add(e)
	}
	return ledger.Outcome{Applied: true}
}

func (s *Store) agenda(pipeline string) *agenda {
	a := s.due[pipeline]
	if a == nil {
		a = &agenda{}
		s.due[pipeline] = a
	}
	return a
}

// Load returns the rows of keys that exist.
func (s *Store) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []ledger.Row
	for _, k := range keys {
		if e := s.rows[k]; e != nil {
			rows = append(rows, own(&e.row))
		}
	}
	return rows, nil
}

// Due returns the pipeline's rows that are due, earliest first; of those due at once, in key order.
func (s *Store) Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.agenda(pipeline).first(before, limit)
	rows := make([]ledger.Row, len(first))
	for i, e := range first {
		rows[i] = own(&e.row)
	}
	return rows, nil
}

// Scan yields the rows of the range that are there when it comes to them, in
// key order. The loop's body may call the store.
func (s *Store) Scan(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		for _, k := range s.keys(r) {
			rows, err := s.Load(ctx, []ledger.RowKey{k})
			if err != nil {
				yield(ledger.Row{}, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
		if ctx.Err() != nil {
			yield(ledger.Row{}, context.Cause(ctx))
		}
	}
}

func (s *Store) keys(r ledger.Range) []ledger.RowKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []ledger.RowKey
	for k := range s.rows {
		if r.Match(k) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, ledger.RowKey.Compare)
	return keys
}

// Traits says that nothing outlives the process.
func (s *Store) Traits() ledger.Traits { return ledger.Traits{Volatile: true} }

// Close does nothing.
func (s *Store) Close() error { return nil }

// own returns a copy that shares nothing with r.
func own(r *ledger.Row) ledger.Row {
	c := *r
	c.History = slices.Clone(r.History)
	return c
}
