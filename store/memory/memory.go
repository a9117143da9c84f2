// Package memory keeps records in memory, for tests and trials.
package memory

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/pawlhq/pawl/store"
)

// Store is a [store.Store] in memory.
type Store struct {
	mu     sync.Mutex
	byName *btree.BTreeG[*store.Record]
	byDue  *btree.BTreeG[*store.Record]
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{
		byName: btree.NewBTreeGOptions(func(a, b *store.Record) bool { return a.Compare(b.Key) < 0 }, btree.Options{NoLocks: true}),
		byDue:  btree.NewBTreeGOptions(dueBefore, btree.Options{NoLocks: true}),
	}
}

func dueBefore(a, b *store.Record) bool {
	return cmp.Or(cmp.Compare(a.Space, b.Space), a.Due.Compare(b.Due), cmp.Compare(a.Name, b.Name)) < 0
}

var traits = store.Traits{
	Volatile: true, Local: true, Batch: 1000, Swaps: 1, Apply: store.MaxApply, Body: store.MaxBody, Name: store.MaxName,
}

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits { return traits }

// Swap implements [store.Store].
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]store.Outcome, len(changes))
	for i := range changes {
		c := &changes[i]
		if out[i].Err = traits.Check(c); out[i].Err != nil {
			continue
		}
		if out[i] = s.compare(c); !out[i].Refused {
			s.write(c)
			out[i].Applied = true
		}
	}
	return out, nil
}

// Apply implements [store.Store].
func (s *Store) Apply(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := traits.CheckAll(changes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out, refused := make([]store.Outcome, len(changes)), false
	for i := range changes {
		out[i] = s.compare(&changes[i])
		refused = refused || out[i].Refused
	}
	for i := range changes {
		if !refused {
			s.write(&changes[i])
			out[i].Applied = true
		}
	}
	return out, nil
}

func (s *Store) find(k store.Key) (*store.Record, bool) {
	return s.byName.Get(&store.Record{Key: k})
}

func (s *Store) compare(c *store.Change) store.Outcome {
	now, found := s.find(c.Key)
	switch {
	case !found && !c.Expect.IsZero(), !found && c.Next == nil:
		return store.Outcome{Refused: true}
	case found && now.Nonce != c.Expect:
		current := *now
		return store.Outcome{Refused: true, Current: &current}
	}
	return store.Outcome{}
}

func (s *Store) write(c *store.Change) {
	if was, found := s.byName.Delete(&store.Record{Key: c.Key}); found && !was.Due.IsZero() {
		s.byDue.Delete(was)
	}
	if c.Next == nil {
		return
	}
	next := *c.Next
	if !next.Due.IsZero() {
		next.Due = time.UnixMilli(next.Due.UnixMilli()).UTC()
	}
	s.byName.Set(&next)
	if !next.Due.IsZero() {
		s.byDue.Set(&next)
	}
}

// Load implements [store.Store].
func (s *Store) Load(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []store.Record
	for _, k := range keys {
		if r, ok := s.find(k); ok {
			found = append(found, *r)
		}
	}
	return found, nil
}

// Due implements [store.Store].
func (s *Store) Due(ctx context.Context, r store.DueRange) ([]store.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []store.Record
	from := &store.Record{Key: store.Key{Space: r.Space, Name: r.After.Name}, Due: r.After.Due}
	s.byDue.Ascend(from, func(next *store.Record) bool {
		switch {
		case next.Space != r.Space || next.Due.After(r.Before) || len(found) == r.Limit:
			return false
		case !dueBefore(from, next):
		case r.Skip > 0:
			r.Skip--
		default:
			found = append(found, *next)
		}
		return true
	})
	return found, nil
}

const page = 256

// Scan implements [store.Store].
func (s *Store) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Record, error] {
	return store.ScanPages(r, page, func(r store.Range) ([]store.Record, error) { return s.page(ctx, r) })
}

func (s *Store) page(ctx context.Context, r store.Range) ([]store.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []store.Record
	take := func(next *store.Record) bool {
		switch {
		case next.Space != r.Space || len(found) == r.Limit:
			return false
		case r.Newest && r.Before != "" && next.Name >= r.Before, !r.Newest && r.After != "" && next.Name <= r.After:
			return true // the bound itself
		case r.Newest && r.After != "" && next.Name <= r.After, !r.Newest && r.Before != "" && next.Name >= r.Before:
			return false
		}
		found = append(found, *next)
		return true
	}
	switch {
	case !r.Newest:
		s.byName.Ascend(&store.Record{Key: store.Key{Space: r.Space, Name: r.After}}, take)
	case r.Before != "":
		s.byName.Descend(&store.Record{Key: store.Key{Space: r.Space, Name: r.Before}}, take)
	default: // start at the first name of the next space, and skip it
		first := &store.Record{Key: store.Key{Space: r.Space + "\x00"}}
		s.byName.Descend(first, func(next *store.Record) bool { return next.Key == first.Key || take(next) })
	}
	return found, nil
}

// Close implements [store.Store].
func (s *Store) Close() error { return nil }
