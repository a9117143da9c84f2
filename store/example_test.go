package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/storetest"
)

// records is a store of your own. This one is a map.
type records struct {
	mu   sync.Mutex
	rows map[store.Key]store.Record
}

// Traits implements store.Store.
func (*records) Traits() store.Traits {
	return store.Traits{Volatile: true, Local: true, Batch: 100, Swaps: 1, Body: store.MaxBody, Name: store.MaxName}
}

// Swap implements store.Store.
func (s *records) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out, traits := make([]store.Outcome, len(changes)), s.Traits()
	for i, c := range changes {
		now, found := s.rows[c.Key]
		switch {
		case traits.Check(&c) != nil:
			out[i].Err = traits.Check(&c)
		case now.Nonce != c.Expect || !found && c.Next == nil:
			out[i].Refused = true
			if found {
				out[i].Current = &now
			}
		case c.Next == nil:
			out[i].Applied = true
			delete(s.rows, c.Key)
		default:
			out[i].Applied = true
			next := *c.Next
			if !next.Due.IsZero() {
				next.Due = next.Due.UTC().Truncate(time.Millisecond)
			}
			s.rows[c.Key] = next
		}
	}
	return out, nil
}

// Apply implements store.Store. The file index needs it, pipelines and archives do not.
func (*records) Apply(context.Context, []store.Change) ([]store.Outcome, error) {
	return nil, store.ErrRejected
}

// Load implements store.Store.
func (s *records) Load(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	return s.find(func(r store.Record) bool { return slices.Contains(keys, r.Key) }), context.Cause(ctx)
}

func (s *records) find(match func(store.Record) bool) (found []store.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		if match(r) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b store.Record) int { return a.Compare(b.Key) })
	return found
}

// Due implements store.Store.
func (s *records) Due(ctx context.Context, q store.DueRange) ([]store.Record, error) {
	after := func(r store.Record) bool {
		return r.Due.After(q.After.Due) || r.Due.Equal(q.After.Due) && r.Name > q.After.Name
	}
	due := s.find(func(r store.Record) bool {
		return r.Space == q.Space && !r.Due.IsZero() && !r.Due.After(q.Before) && after(r)
	})
	slices.SortStableFunc(due, func(a, b store.Record) int { return a.Due.Compare(b.Due) })
	due = due[min(q.Skip, len(due)):]
	return due[:min(q.Limit, len(due))], context.Cause(ctx)
}

// Scan implements store.Store.
func (s *records) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Record, error] {
	return store.ScanPages(r, 100, func(r store.Range) ([]store.Record, error) {
		found := s.find(func(x store.Record) bool {
			return x.Space == r.Space && x.Name > r.After && (r.Before == "" || x.Name < r.Before)
		})
		if r.Newest {
			slices.Reverse(found)
		}
		return found[:min(r.Limit, len(found))], context.Cause(ctx)
	})
}

// Close implements store.Store.
func (*records) Close() error { return nil }

// The suite shows that the store is complete.
func TestExampleStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{New: func(*testing.T) storetest.Open {
		return func() (store.Store, error) { return &records{rows: make(map[store.Key]store.Record)}, nil }
	}})
}

// Example_customStore writes a register to a store of your own.
func Example_customStore() {
	ctx := context.Background()
	rows := ledger.NewRows(&records{rows: make(map[store.Key]store.Record)})
	version, err := rows.WriteRegister(ctx, "cursor", "", []byte("41"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := rows.WriteRegister(ctx, "cursor", version, []byte("42")); err != nil {
		log.Fatal(err)
	}
	_, err = rows.WriteRegister(ctx, "cursor", version, []byte("41 again"))
	fmt.Println(errors.Is(err, ledger.ErrRegisterChanged))
	cursor, err := rows.ReadRegister(ctx, "cursor")
	fmt.Println(string(cursor.Value), err)
	// Output:
	// true
	// 42 <nil>
}
