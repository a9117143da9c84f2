package lock

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
)

// Bucket is a bucket for locks. It is safe for concurrent use.
type Bucket struct {
	*env
	name string
}

// Open checks that the store supports locks, with 7 requests on an object below prefix, and removes
// that object. If the store ignores a precondition, the error names it and matches
// [bucket.ErrIgnored].
func Open(ctx context.Context, store bucket.Store, name, prefix string) (*Bucket, error) {
	if err := doctor.Prove(ctx, store, name, prefix, doctor.Locks); err != nil {
		return nil, err
	}
	return Proved(store, name), nil
}

// Proved returns the bucket without a check. Use it after an earlier [Open], or after package
// doctor has checked the store. If a store ignores a precondition, several processes can hold a
// lock at the same time.
func Proved(store bucket.Store, name string) *Bucket { return &Bucket{realEnv(store), name} }

// Mutex returns the lock whose lease is the object key. No part of the key between slashes may be
// empty, "." or "..", because some stores list such a key under another name.
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

// checkedHolder returns the holder's record for a key. It rejects a key if some store could not
// list the objects below it.
func (b *Bucket) checkedHolder(key string, c Config) (Record, error) {
	if err := (event.Object{Bucket: b.name, Key: key}).CheckPath(); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c.holderRecord()
}

// Show returns the record of a lock. After a crash of its holder, the lock is held until another
// process takes it over. If the object is missing, Show returns [bucket.ErrNotFound].
func (b *Bucket) Show(ctx context.Context, key string) (Record, error) {
	l := b.object(b.name, key)
	now, err := l.show(ctx)
	if err != nil {
		return Record{}, fmt.Errorf("the lock %s: %w", &l, err)
	}
	return now.rec, nil
}

// ForceRelease releases a lock on behalf of its holder, which must hold it under this token, as
// [Bucket.Show] returns it. The holder notices at its next renewal, and may continue until then.
// The token rises, so a system that checks tokens rejects the holder once it has seen a higher
// one. ForceRelease sends 2 requests.
func (b *Bucket) ForceRelease(ctx context.Context, key string, token int64) (Record, error) {
	l := b.object(b.name, key)
	return l.forceRelease(ctx, token)
}
