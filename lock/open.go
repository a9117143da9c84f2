package lock

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
)

// Bucket is a bucket with locks. It is safe for concurrent use.
type Bucket struct {
	*env
	name string
}

// Open checks that the store supports locks, with 7 requests on a temporary object below prefix. If
// the store ignores a precondition, the error matches [bucket.ErrIgnored].
func Open(ctx context.Context, store bucket.Store, name, prefix string) (*Bucket, error) {
	if err := doctor.Prove(ctx, store, name, prefix, doctor.Locks); err != nil {
		return nil, err
	}
	return Proved(store, name), nil
}

// Proved returns the bucket of a store that [Open] or package doctor has checked. On any other
// store, several processes may hold a lock at once.
func Proved(store bucket.Store, name string) *Bucket { return &Bucket{realEnv(store), name} }

// Mutex returns the lock whose lease is the object key. Empty, "." and ".." parts are rejected,
// because some stores list them under another name.
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

func (b *Bucket) checkedHolder(key string, c Config) (Record, error) {
	if err := (event.Object{Bucket: b.name, Key: key}).CheckPath(); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c.holderRecord()
}

// Show returns the record of a lock, or [bucket.ErrNotFound]. A crashed holder's lock is held until
// another process takes it over.
func (b *Bucket) Show(ctx context.Context, key string) (Record, error) {
	l := b.object(b.name, key)
	now, err := l.show(ctx)
	if err != nil {
		return Record{}, fmt.Errorf("the lock %s: %w", &l, err)
	}
	return now.rec, nil
}

// ForceRelease releases the lock of the holder with this token, which may continue until its next
// renewal. The token rises, so that a system can reject the old holder.
func (b *Bucket) ForceRelease(ctx context.Context, key string, token int64) (Record, error) {
	l := b.object(b.name, key)
	return l.forceRelease(ctx, token)
}
