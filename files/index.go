package files

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Index keeps the rows of files in a record store. It is safe for concurrent use, even by several
// processes. Set its fields before the first use.
type Index struct {
	// Logger logs ambiguous answers and unreadable list entries. Nil disables logging.
	Logger *slog.Logger
	// Wait waits for a value of wake, which may be nil, or for d, where 0 means no limit. It returns
	// an error if ctx ends first. The default uses the system clock.
	Wait func(ctx context.Context, wake <-chan struct{}, d time.Duration) error

	store   store.Store
	mu      sync.Mutex
	senders map[string]*sender // by entity
}

// NewIndex returns an index in a store that supports Apply. Close closes the store.
func NewIndex(s store.Store) *Index { return &Index{store: s, senders: map[string]*sender{}} }

// Close closes the record store. The index must not be in use.
func (x *Index) Close() error { return x.store.Close() }

func (x *Index) warn(ctx context.Context, text string, args ...any) {
	if x.Logger != nil {
		x.Logger.WarnContext(ctx, "files: "+text, args...)
	}
}

func (x *Index) load(ctx context.Context, k store.Key) (*store.Record, error) {
	found, err := x.store.Load(ctx, []store.Key{k})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Load returns the row of a file, or ErrNotFound.
func (x *Index) Load(ctx context.Context, id string) (File, error) {
	r, err := x.load(ctx, fileKey(id))
	if err == nil && r == nil {
		err = ErrNotFound
	}
	if err != nil {
		return File{}, err
	}
	return decodeFile(r)
}

func (x *Index) byIdempotency(ctx context.Context, entity, key string) (File, error) {
	r, err := x.load(ctx, idempotencyKey(entity, key))
	if err == nil && r == nil {
		err = ErrNotFound
	}
	if err != nil {
		return File{}, err
	}
	id, err := decodeKey(r)
	if err != nil {
		return File{}, err
	}
	return x.Load(ctx, id)
}

// Used returns the usage of an entity.
func (x *Index) Used(ctx context.Context, entity string) (Usage, error) {
	r, err := x.load(ctx, quotaKey(entity))
	if err != nil || r == nil {
		return Usage{}, err
	}
	used, _, err := decodeQuota(r)
	return used, err
}

// List returns up to limit Indexed files of an entity with IDs after the given one, in order of ID.
// They have no idempotency keys, upload IDs or deadlines. List logs and skips unreadable entries.
func (x *Index) List(ctx context.Context, entity, after string, limit int) (list []File, err error) {
	for len(list) < limit {
		n := limit - len(list)
		for r, err := range x.store.Scan(ctx, store.Range{Space: entrySpace(entity), After: after, Limit: n}) {
			if err != nil {
				return nil, err
			}
			n--
			after = r.Name
			f, err := decodeFile(&r)
			if err != nil {
				x.warn(ctx, "skipped an unreadable entry in a list", "entity", entity, "file", r.Name, "error", err)
				continue
			}
			if f.State == Indexed {
				f.Entity = entity
				list = append(list, f)
			}
		}
		if n > 0 {
			break
		}
	}
	return list, nil
}

func (x *Index) listDeletable(ctx context.Context, entity string, limit int) (ids []string, err error) {
	for r, err := range x.store.Scan(ctx, store.Range{Space: entrySpace(entity), Limit: limit}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, r.Name)
	}
	return ids, nil
}

// due returns fewer than limit records only at the end.
func (x *Index) due(ctx context.Context, before time.Time, after store.Place, limit int) ([]store.Record, error) {
	return x.store.Due(ctx, store.DueRange{Space: fileSpace, After: after, Before: before, Limit: limit})
}

// Scan yields all rows in order of ID. It yields ErrUnreadable for an unreadable row and continues.
func (x *Index) Scan(ctx context.Context) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for r, err := range x.store.Scan(ctx, store.Range{Space: fileSpace}) {
			var f File
			if err == nil {
				f, err = decodeFile(&r)
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

func (x *Index) sleep(ctx context.Context, d time.Duration) error { return x.await(ctx, nil, d) }

func (x *Index) await(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	if x.Wait != nil {
		return x.Wait(ctx, wake, d)
	}
	var passed <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		passed = t.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wake:
	case <-passed:
	}
	return nil
}

func wrapUnclear(id string, err error) error {
	if errors.Is(err, ErrUnclear) {
		return err
	}
	return fmt.Errorf("%w: file %s: %w", ErrUnclear, id, err)
}
