// Package memindex is a files.Index in memory, for tests and trials.
package memindex

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/files"
)

// Index is an index that ends with its process.
type Index struct {
	mu   sync.Mutex
	rows map[string]files.File
	used map[string]files.Usage
	keys map[[2]string]string // entity and idempotency key: file
}

var _ files.Index = (*Index)(nil)

// New returns an empty index.
func New() *Index {
	return &Index{rows: map[string]files.File{}, used: map[string]files.Usage{}, keys: map[[2]string]string{}}
}

// Apply implements [files.Index].
func (x *Index) Apply(_ context.Context, c files.Change) (files.Outcome, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	next := c.Next
	old, exists := x.rows[next.ID]
	if exists && old.Nonce != c.Expect || !exists && c.Expect != (files.Nonce{}) {
		o := files.Outcome{Result: files.Refused}
		if exists {
			o.Current = &old
		}
		return o, nil
	}
	key := [2]string{next.Entity, next.Idempotency}
	if !exists && next.Idempotency != "" {
		if holder, ok := x.rows[x.keys[key]]; ok && holder.State != files.Expired {
			return files.Outcome{Result: files.KeyTaken, Current: &holder}, nil
		}
	}
	used := x.used[next.Entity]
	if r := c.Check(used); r != files.Applied {
		return files.Outcome{Result: r}, nil
	}
	x.used[next.Entity] = files.Usage{Bytes: used.Bytes + c.Add.Bytes, Open: used.Open + c.Add.Open}
	x.write(next, key, c.Drop, exists)
	return files.Outcome{}, nil
}

func (x *Index) write(next files.File, key [2]string, drop, exists bool) {
	if !drop {
		x.rows[next.ID] = next
		if !exists && next.Idempotency != "" {
			x.keys[key] = next.ID
		}
		return
	}
	delete(x.rows, next.ID)
	if x.keys[key] == next.ID {
		delete(x.keys, key)
	}
}

// Load implements [files.Index].
func (x *Index) Load(_ context.Context, id string) (files.File, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f, ok := x.rows[id]
	if !ok {
		return files.File{}, files.ErrNotFound
	}
	return f, nil
}

// ByIdempotency implements [files.Index].
func (x *Index) ByIdempotency(ctx context.Context, entity, key string) (files.File, error) {
	x.mu.Lock()
	id := x.keys[[2]string{entity, key}]
	x.mu.Unlock()
	return x.Load(ctx, id)
}

// List implements [files.Index].
func (x *Index) List(_ context.Context, entity, after string, limit int) ([]files.File, error) {
	rows := x.sorted(func(f *files.File) bool {
		return f.Entity == entity && f.State == files.Indexed && f.ID > after
	}, func(a, b files.File) int { return cmp.Compare(a.ID, b.ID) })
	return rows[:min(limit, len(rows))], nil
}

// Held implements [files.Index].
func (x *Index) Held(_ context.Context, entity string, limit int) ([]files.File, error) {
	rows := x.sorted(func(f *files.File) bool { return f.Entity == entity && f.Deletable() },
		func(a, b files.File) int { return cmp.Compare(a.ID, b.ID) })
	return rows[:min(limit, len(rows))], nil
}

// Due implements [files.Index].
func (x *Index) Due(_ context.Context, before time.Time, after *files.File, limit int) ([]files.File, error) {
	order := func(a, b files.File) int { return cmp.Or(a.LookAt.Compare(b.LookAt), cmp.Compare(a.ID, b.ID)) }
	rows := x.sorted(func(f *files.File) bool {
		return !f.LookAt.IsZero() && !f.LookAt.After(before) && (after == nil || order(*f, *after) > 0)
	}, order)
	return rows[:min(limit, len(rows))], nil
}

// sorted returns the rows that want holds for.
func (x *Index) sorted(want func(*files.File) bool, order func(a, b files.File) int) (rows []files.File) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.rows {
		if want(&f) {
			rows = append(rows, f)
		}
	}
	slices.SortFunc(rows, order)
	return rows
}

// Used implements [files.Index].
func (x *Index) Used(_ context.Context, entity string) (files.Usage, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.used[entity], nil
}

// Scan implements [files.Index].
func (x *Index) Scan(_ context.Context, after string) iter.Seq2[files.File, error] {
	return func(yield func(files.File, error) bool) {
		rows := x.sorted(func(f *files.File) bool { return f.Key > after },
			func(a, b files.File) int { return cmp.Compare(a.Key, b.Key) })
		for _, f := range rows {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// Close implements [files.Index].
func (x *Index) Close() error { return nil }
