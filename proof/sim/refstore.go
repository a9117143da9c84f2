package sim

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// refStore is a minimal ledger.Store. A test compares every other store with it.
type refStore struct{ rows []ledger.Row }

var _ ledger.Store = (*refStore)(nil)

func (s *refStore) find(k ledger.RowKey) int {
	for i := range s.rows { // a copy of each row would be slow
		if s.rows[i].RowKey == k {
			return i
		}
	}
	return -1
}

func (s *refStore) Swap(_ context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	out := make([]ledger.Outcome, len(changes))
	for i := range changes {
		out[i] = s.apply(&changes[i])
	}
	return out, nil
}

// A row without a nonce is deleted.
func (s *refStore) set(k ledger.RowKey, row ledger.Row) {
	if at := s.find(k); at >= 0 {
		s.rows = slices.Delete(s.rows, at, at+1)
	}
	if !row.Nonce.IsZero() {
		s.rows = append(s.rows, row)
	}
}

func (s *refStore) apply(c *ledger.Change) ledger.Outcome {
	at := s.find(c.Key)
	switch {
	case at < 0 && !c.Expect.IsZero():
		return ledger.Outcome{}
	case at >= 0 && s.rows[at].Nonce != c.Expect:
		current := s.rows[at]
		return ledger.Outcome{Current: &current}
	case at >= 0 && c.Row == nil:
		s.rows = slices.Delete(s.rows, at, at+1)
	case at >= 0:
		s.rows[at] = *c.Row
	case c.Row != nil:
		s.rows = append(s.rows, *c.Row)
	}
	return ledger.Outcome{Applied: true}
}

func (s *refStore) Load(_ context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	var found []ledger.Row
	for _, k := range keys {
		if at := s.find(k); at >= 0 {
			found = append(found, s.rows[at])
		}
	}
	return found, nil
}

func (s *refStore) Due(_ context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	var found []ledger.Row
	for i := range s.rows {
		if due := s.rows[i].Due(); s.rows[i].Pipeline == pipeline && !due.IsZero() && !due.After(before) {
			found = append(found, s.rows[i])
		}
	}
	slices.SortFunc(found, func(a, b ledger.Row) int {
		return cmp.Or(a.Due().Compare(b.Due()), a.RowKey.Compare(b.RowKey))
	})
	return found[:min(limit, len(found))], nil
}

// Scan is never called.
func (s *refStore) Scan(context.Context, ledger.Range) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) { yield(ledger.Row{}, errNoRows) }
}

func (s *refStore) Close() error { return nil }
