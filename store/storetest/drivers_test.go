package storetest_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/store/storetest"
)

func judge(ctx context.Context, s *memory.Store, changes []store.Change) []bool {
	met := make([]bool, len(changes))
	for i, c := range changes {
		found, err := s.Load(ctx, []store.Key{c.Key})
		met[i] = err == nil && (len(found) == 0 && c.Expect.IsZero() || len(found) > 0 && found[0].Nonce == c.Expect)
	}
	return met
}

func ignoreNonce(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	changes = slices.Clone(changes)
	for i, c := range changes {
		found, err := s.Load(ctx, []store.Key{c.Key})
		if err != nil {
			return nil, err
		}
		if len(found) > 0 && !c.Expect.IsZero() {
			changes[i].Expect = found[0].Nonce
		}
	}
	return s.Swap(ctx, changes)
}

func refuseBlindly(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	out, err := s.Swap(ctx, changes)
	for i := range out {
		out[i].Current = nil
	}
	return out, err
}

func allOrNothing(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	if slices.Contains(judge(ctx, s, changes), false) {
		return make([]store.Outcome, len(changes)), nil
	}
	return s.Swap(ctx, changes)
}

func takeFew(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	if len(changes) == s.Traits().Batch {
		return nil, errors.New("too many changes")
	}
	return s.Swap(ctx, changes)
}

func answerHalf(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	out, err := s.Swap(ctx, changes)
	for i := len(out) / 2; i < len(out); i++ {
		out[i] = store.Outcome{Err: storetest.ErrLost}
	}
	return out, err
}

func swapTwice(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	if _, err := s.Swap(ctx, changes); err != nil {
		return nil, err
	}
	return s.Swap(ctx, changes)
}

func keepRecords() *driver {
	kept := map[store.Key]*store.Record{}
	var mu sync.Mutex
	return &driver{
		swap: func(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range changes {
				kept[c.Key] = c.Next
			}
			return s.Swap(ctx, changes)
		},
		load: func(ctx context.Context, s *memory.Store, keys []store.Key) ([]store.Record, error) {
			mu.Lock()
			defer mu.Unlock()
			found, err := s.Load(ctx, keys)
			for i := range found {
				if r := kept[found[i].Key]; r != nil {
					found[i] = *r
				}
			}
			return found, err
		},
	}
}

func readThenWrite(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	if slices.Contains(judge(ctx, s, changes), false) {
		return s.Swap(ctx, changes)
	}
	for range 100 {
		runtime.Gosched() // another call may do the same meanwhile
	}
	return ignoreNonce(ctx, s, changes)
}

func swapAll(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	t := s.Traits()
	if err := t.CheckAll(changes); err != nil {
		return nil, err
	}
	return s.Swap(ctx, changes)
}

func applyInParts(ctx context.Context, s *memory.Store, changes []store.Change) (out []store.Outcome, err error) {
	for part := range slices.Chunk(changes, s.Traits().Apply) {
		o, err := s.Apply(ctx, part)
		if err != nil {
			return nil, err
		}
		out = append(out, o...)
	}
	return out, nil
}

func applySilently(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	out, err := s.Apply(ctx, changes)
	for i := range out {
		if out[i].Refused {
			out[i] = store.Outcome{}
		}
	}
	return out, err
}

func readThenApply(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	if slices.Contains(judge(ctx, s, changes), false) {
		return s.Apply(ctx, changes)
	}
	for range 100 {
		runtime.Gosched()
	}
	return ignoreNonce(ctx, s, changes)
}

func sometimes(f writing) writing {
	var calls atomic.Int64
	return func(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
		if calls.Add(1)%4 > 0 {
			return s.Swap(ctx, changes)
		}
		return f(ctx, s, changes)
	}
}

func loseApplied(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(changes))
	for i, met := range judge(ctx, s, changes) {
		found, err := s.Load(ctx, []store.Key{changes[i].Key})
		if err != nil {
			return nil, err
		}
		if out[i] = (store.Outcome{Applied: met, Refused: !met}); !met && len(found) > 0 {
			out[i].Current = &found[0]
		}
	}
	return out, nil
}

func applyRefused(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
	out, err := s.Swap(ctx, changes)
	if err != nil {
		return nil, err
	}
	_, err = ignoreNonce(ctx, s, changes)
	return out, err
}

func renaming(rename func(string) string) func() *driver {
	return func() *driver {
		return &driver{
			swap: func(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
				changes = slices.Clone(changes)
				for i := range changes {
					if changes[i].Key.Name = rename(changes[i].Key.Name); changes[i].Next != nil {
						r := *changes[i].Next
						r.Key = changes[i].Key
						changes[i].Next = &r
					}
				}
				return s.Swap(ctx, changes)
			},
			load: func(ctx context.Context, s *memory.Store, keys []store.Key) ([]store.Record, error) {
				as := map[store.Key]store.Key{}
				for _, k := range keys {
					as[store.Key{Space: k.Space, Name: rename(k.Name)}] = k
				}
				var found []store.Record
				for k, was := range as {
					one, err := s.Load(ctx, []store.Key{k})
					if err != nil {
						return nil, err
					}
					for _, r := range one {
						r.Key = was
						found = append(found, r)
					}
				}
				return found, nil
			},
		}
	}
}

func rewriting(edit func(*store.Record)) func() *driver {
	return swapping(func(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
		changes = slices.Clone(changes)
		for i := range changes {
			if changes[i].Next != nil {
				r := *changes[i].Next
				edit(&r)
				changes[i].Next = &r
			}
		}
		return s.Swap(ctx, changes)
	})
}

func dueing(edit func(*store.DueRange)) func() *driver {
	return func() *driver {
		return &driver{due: func(ctx context.Context, s *memory.Store, r store.DueRange) ([]store.Record, error) {
			edit(&r)
			return s.Due(ctx, r)
		}}
	}
}

func dueByName(ctx context.Context, s *memory.Store, r store.DueRange) ([]store.Record, error) {
	found, err := s.Due(ctx, store.DueRange{Space: r.Space, After: r.After, Before: r.Before, Limit: 1 << 30})
	slices.SortFunc(found, func(a, b store.Record) int { return a.Compare(b.Key) })
	return found[:min(r.Limit, len(found))], err
}

func scanning(edit func(*store.Range)) func() *driver {
	return func() *driver {
		return &driver{scan: func(ctx context.Context, s *memory.Store, r store.Range) iter.Seq2[store.Record, error] {
			edit(&r)
			return s.Scan(ctx, r)
		}}
	}
}

func scanTwice(ctx context.Context, s *memory.Store, r store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		var last *store.Record
		for next, err := range s.Scan(ctx, r) {
			if last = &next; !yield(next, err) {
				return
			}
		}
		if last != nil {
			yield(*last, nil)
		}
	}
}

func changeTraits() *driver {
	var calls atomic.Int64
	return &driver{traits: func(t store.Traits) store.Traits {
		t.Batch += int(calls.Add(1))
		return t
	}}
}

func few(batch, apply int) func() *driver {
	return func() *driver {
		d := declaring(func(t *store.Traits) { t.Batch, t.Apply = batch, apply })()
		d.apply = func(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
			t := d.Traits()
			if err := t.CheckAll(changes); err != nil {
				return nil, err
			}
			return s.Apply(ctx, changes)
		}
		return d
	}
}

func withTx() *driver { return declaring(func(t *store.Traits) { t.Transactions = true })() }

type txs struct {
	blind bool // overwrites changes by others
	eager bool // writes before the commit
}

type tx struct {
	txs     *txs
	s       store.Store
	read    map[store.Key]store.Nonce
	changes []store.Change
}

func (t *txs) within(ctx context.Context, s store.Store, f func(store.Tx) error) error {
	x := &tx{t, s, map[store.Key]store.Nonce{}, nil}
	if err := f(x); err != nil || t.eager {
		return err
	}
	for i := range x.changes {
		if found, err := s.Load(ctx, []store.Key{x.changes[i].Key}); err == nil && t.blind {
			x.changes[i].Expect = found[0].Nonce
		}
	}
	out, err := s.Apply(ctx, x.changes)
	if err == nil && len(out) > 0 && !out[0].Applied {
		err = store.ErrThrottled
	}
	return err
}

func (x *tx) Lock(ctx context.Context, k store.Key) (*store.Record, error) {
	found, err := x.s.Load(ctx, []store.Key{k})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	x.read[k] = found[0].Nonce
	runtime.Gosched()
	return &found[0], nil
}

func (x *tx) Put(ctx context.Context, r store.Record) error {
	c := store.Change{Key: r.Key, Expect: x.read[r.Key], Next: &r}
	if x.txs.eager {
		_, err := x.s.Swap(ctx, []store.Change{c})
		return err
	}
	x.changes = append(x.changes, c)
	return nil
}
