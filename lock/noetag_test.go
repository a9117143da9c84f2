package lock

import (
	"context"
	"io"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// withoutETags is also a proxy that removes them.
type withoutETags struct {
	bucket.Store
	reads, writes bool
}

func (s withoutETags) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	info, body, err := s.Store.Get(ctx, ref)
	if s.reads {
		info.ETag = ""
	}
	return info, body, err
}

func (s withoutETags) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	etag, err := s.Store.Put(ctx, ref, o, c)
	if s.writes {
		etag = ""
	}
	return etag, err
}

// A write with an empty ETag as its condition would be unconditional.
func TestReadsWithoutETags(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.noError(b.mustAcquire(b.mutex(Config{}).Acquire(b.Context())).Release(b.Context()))
		b.put("data", "text", nil)
		lock, data := b.content("k"), b.content("data")
		store := Proved(withoutETags{b.store, true, true}, "b")
		m, err := store.Mutex("k", Config{})
		b.noError(err)
		_, err = m.Acquire(b.Context())
		b.wantError(err, bucket.ErrIgnored, "s3://b/k", "no ETag")
		_, err = store.Update(b.Context(), "data", appendText("more"), UpdateConfig{})
		b.wantError(err, bucket.ErrIgnored, "s3://b/data", "no ETag")
		if b.content("k") != lock || b.content("data") != data {
			b.Error("something was written")
		}
	})
}

func TestWritesWithoutETags(t *testing.T) {
	inBubble(t, func(b *bubble) {
		m, err := Proved(withoutETags{b.store, false, true}, "b").Mutex("k", Config{TTL: ttl})
		b.noError(err)
		l := b.mustAcquire(m.Acquire(b.Context()))
		sleep(3 * ttl)
		_, err = b.user().bucket.ForceRelease(b.Context(), "k", l.Token())
		b.noError(err)
		other := b.mustAcquire(b.mutex(Config{}).TryAcquire(b.Context()))
		_, why := l.waitForEnd()
		b.wantError(why, ErrLost)
		b.wantError(l.Release(b.Context()), ErrLost)
		b.noError(other.Release(b.Context()))
	})
}
