package lock

import (
	"context"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
)

// Bucket is a bucket that locks can rely on. It is safe for concurrent use.
type Bucket struct {
	*world
	name string
}

// Open proves that the store honours what locks rely on, in 7 requests on an
// object of its own below prefix, which it removes again. The error names the
// precondition that the store ignores; it matches [bucket.ErrIgnored].
func Open(ctx context.Context, store bucket.Store, name, prefix string) (*Bucket, error) {
	if err := doctor.Prove(ctx, store, name, prefix, doctor.Locks); err != nil {
		return nil, fmt.Errorf("locks cannot be used here: %w", err)
	}
	return Proved(store, name), nil
}

// Proved returns the bucket without a proof, for those who have one: that of an
// earlier [Open], or of package doctor. On a store that ignores a precondition
// nothing here holds.
func Proved(store bucket.Store, name string) *Bucket { return &Bucket{realWorld(store), name} }

// Mutex returns the lock whose lease is the object key. What is between its slashes
// must not be empty, "." or "..", for some stores list such a key under another.
func (b *Bucket) Mutex(key string, c Config) (*Mutex, error) {
	holder, err := b.holder(key, c)
	if err != nil {
		return nil, fmt.Errorf("the lock %s: %w", event.Object{Bucket: b.name, Key: key}, err)
	}
	return b.mutex(key, holder), nil
}

func (b *Bucket) mutex(key string, holder Record) *Mutex {
	return &Mutex{place: b.object(b.name, key), holder: holder}
}

// holder is that of the lock of a key. A key below which not every store would list
// the lock's companions is refused.
func (b *Bucket) holder(key string, c Config) (Record, error) {
	if err := (event.Object{Bucket: b.name, Key: key}).CheckPath(); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c.holder()
}

// holder is what is written of who holds a lock.
func (c Config) holder() (Record, error) {
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.TTL < MinTTL || c.TTL > MaxTTL {
		return Record{}, fmt.Errorf("%w: TTL %v: want %v to %v", ErrConfig, c.TTL, MinTTL, MaxTTL)
	}
	for _, text := range []string{c.Owner, c.Reason} {
		if len(text) > MaxText || !utf8.ValidString(text) {
			return Record{}, fmt.Errorf("%w: Owner and Reason have at most %d bytes of UTF-8 each", ErrConfig, MaxText)
		}
	}
	if len(c.ID) > MaxID || !utf8.ValidString(c.ID) {
		return Record{}, fmt.Errorf("%w: ID has at most %d bytes of UTF-8", ErrConfig, MaxID)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // it is only told to people
	}
	return Record{ID: c.ID, Owner: c.Owner, Reason: c.Reason, Host: host, PID: os.Getpid(), TTL: c.TTL.Milliseconds()}, nil
}

// Show returns what the lease object of a lock says. A lock whose holder is gone
// is still held until another one takes it over. Without an object it is a
// [bucket.ErrNotFound].
func (b *Bucket) Show(ctx context.Context, key string) (Record, error) {
	o := b.object(b.name, key)
	now, err := o.get(ctx)
	switch {
	case err != nil:
		return Record{}, fmt.Errorf("reading the lock %s: %w", &o, err)
	case !now.exists:
		return Record{}, fmt.Errorf("the lock %s: %w: nobody has ever held it", &o, bucket.ErrNotFound)
	}
	return now.rec, nil
}

// ForceRelease releases a lock in the name of its holder, which must hold it
// under this token, as [Bucket.Show] shows it. The holder learns it at its next
// renewal, and may go on until then: its token is too old at once. It takes 2
// requests.
func (b *Bucket) ForceRelease(ctx context.Context, key string, token int64) (Record, error) {
	p := b.object(b.name, key)
	return p.forceRelease(ctx, token)
}

func (p *place) forceRelease(ctx context.Context, token int64) (Record, error) {
	now, err := p.get(ctx)
	for err == nil {
		switch {
		case !now.exists:
			return Record{}, fmt.Errorf("releasing the lock %s: %w: nobody has ever held it", p, bucket.ErrNotFound)
		case now.rec.State == Released:
			return Record{}, fmt.Errorf("releasing the lock %s: %w: nobody holds it", p, ErrConfig)
		case now.rec.Token != token:
			return Record{}, fmt.Errorf("releasing the lock %s: %w: it is held under the token %d, and not under %d, by %s", p, ErrConfig, now.rec.Token, token, now.rec.holder())
		}
		f, err := p.write(now, now.rec.forced(p.nonce(), p.clock.Now())).run(ctx)
		if err != nil {
			return Record{}, err
		}
		if f.fate != cell.Lost {
			return f.now.rec, nil
		}
		now = f.now // renewed, or taken over already
	}
	return Record{}, fmt.Errorf("releasing the lock %s: %w", p, err)
}
