package lock

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
)

// Bucket is a bucket that locks can rely on. It is safe for concurrent use.
type Bucket struct {
	*env
	name string
}

// Open proves that the store honours what locks rely on, in 7 requests on an
// object of its own below prefix, which it removes again. The error names the
// precondition that the store ignores; it matches [bucket.ErrIgnored].
func Open(ctx context.Context, store bucket.Store, name, prefix string) (*Bucket, error) {
	if err := doctor.Prove(ctx, store, name, prefix, doctor.Locks); err != nil {
		return nil, fmt.Errorf("check the store for locks: %w", err)
	}
	return Proved(store, name), nil
}

// Proved returns the bucket without a proof, for those who have one: that of an
// earlier [Open], or of package doctor. On a store that ignores a precondition
// nothing here holds.
func Proved(store bucket.Store, name string) *Bucket { return &Bucket{realEnv(store), name} }

// Mutex returns the lock whose lease is the object key. What is between its slashes
// must not be empty, "." or "..", for some stores list such a key under another.
func (b *Bucket) Mutex(key string, c Config) (*Mutex, error) {
	holder, err := b.checkedHolder(key, c)
	if err != nil {
		return nil, fmt.Errorf("the lock %s: %w", event.Object{Bucket: b.name, Key: key}, err)
	}
	return b.mutex(key, holder), nil
}

func (b *Bucket) mutex(key string, holder Record) *Mutex {
	return &Mutex{contender: contender{leaseCell: b.object(b.name, key), holder: holder}}
}

// holder is that of the lock of a key. A key below which not every store would list
// the lock's companions is refused.
func (b *Bucket) checkedHolder(key string, c Config) (Record, error) {
	if err := (event.Object{Bucket: b.name, Key: key}).CheckPath(); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c.holderRecord()
}

// Show returns the record of a lock. A lock whose holder is gone is still held until
// another process takes it over. A missing object is a [bucket.ErrNotFound].
func (b *Bucket) Show(ctx context.Context, key string) (Record, error) {
	l := b.object(b.name, key)
	now, err := l.show(ctx)
	if err != nil {
		return Record{}, fmt.Errorf("the lock %s: %w", &l, err)
	}
	return now.rec, nil
}

// ForceRelease releases a lock in the name of its holder, which must hold it under this
// token, as [Bucket.Show] returns it. The holder notices at its next renewal, and may
// continue until then: its token is too old at once. It takes 2 requests.
func (b *Bucket) ForceRelease(ctx context.Context, key string, token int64) (Record, error) {
	l := b.object(b.name, key)
	return l.forceRelease(ctx, token)
}
