package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

// The context has ended, as in a deferred release.
func TestReleaseAfterContextEnds(t *testing.T) {
	onBoth(t, func(b *bubble) {
		ctx, end := context.WithCancel(b.Context())
		l := b.mustAcquire(b.mutex(Config{TTL: time.Hour}).Acquire(ctx))
		end()
		b.noError(l.Release(ctx))
		l = b.mustAcquire(b.mutex(Config{}).TryAcquire(b.Context()))
		b.noError(l.Release(b.Context()))
	})
}

func TestFailingWritesTimeOut(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{})
		for range 10_000 {
			u.calls.Next(buckettest.Put, buckettest.Answer(bucket.ErrUnclear))
		}
		began := time.Now()
		_, err := m.TryAcquire(b.Context())
		b.wantError(err, bucket.ErrUnclear, b.lock)
		_, err = u.bucket.Update(b.Context(), "data", func(_ context.Context, c Content) (Content, error) {
			c.Body = []byte("x")
			return c, nil
		}, UpdateConfig{Create: true})
		b.wantError(err, ErrUnsure, "s3://b/data")
		b.wantDuration(time.Since(began), 2*outageTimeout, 2*outageTimeout+10*time.Second)
	})
}

func TestUnchangedUpdateRaisesFence(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		write := func(text string, fence int64) error {
			_, err := u.bucket.Update(b.Context(), "data", func(_ context.Context, c Content) (Content, error) {
				c.Body = []byte(text)
				return c, nil
			}, UpdateConfig{Create: true, Fence: fence})
			return err
		}
		b.noError(write("same", 1))
		b.noError(write("same", 10))
		b.wantError(write("old", 9), ErrFenced)
		if b.content("data") != "same" {
			b.Error("an old holder has written")
		}
	})
}

func TestAcquireReturnsStoreErrorAfterTimeout(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		refused := errors.New("connection refused")
		down := func(context.Context, func(context.Context) error) error {
			return fmt.Errorf("%w: %w", bucket.ErrUnavailable, refused)
		}
		u.calls.Next(buckettest.Get, down, down, noAnswer)
		_, err := u.mutex(Config{}).Acquire(b.withTimeout(5 * time.Second))
		b.wantError(err, refused, b.lock)
		b.wantError(err, context.DeadlineExceeded)
	})
}

func TestWriterReleasesLeaseInOutage(t *testing.T) {
	away := buckettest.Answer(bucket.ErrUnavailable)
	for name, c := range map[string]struct {
		acquire func(*RWMutex, context.Context) (*Lease, error)
		fault   buckettest.Fault
	}{
		"Lock, away": {(*RWMutex).Lock, away}, "TryLock, away": {(*RWMutex).TryLock, away},
		// Each time, the writer lease expires before the listing.
		"Lock, silent": {(*RWMutex).Lock, noAnswer}, "TryLock, silent": {(*RWMutex).TryLock, noAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				u := b.user()
				u.calls.Next(buckettest.List, slices.Repeat([]buckettest.Fault{c.fault}, 1000)...)
				began := time.Now()
				_, err := c.acquire(u.rw(Config{TTL: ttl}), b.withTimeout(time.Hour))
				b.wantError(err, bucket.ErrUnavailable, "s3://b/k.readers/")
				b.wantDuration(time.Since(began), outageTimeout, outageTimeout+2*callTimeout)
				b.noError(b.mustAcquire(b.user().rw(Config{}).TryRLock(b.Context())).Release(b.Context()))
			})
		})
	}
}

func TestListingSlowerThanLease(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		slow := func(ctx context.Context, do func(context.Context) error) error {
			sleep(callTimeout - time.Second)
			return do(ctx)
		}
		u.calls.Next(buckettest.List, slices.Repeat([]buckettest.Fault{slow}, 1000)...)
		began := time.Now()
		_, err := u.rw(Config{TTL: ttl / 2}).Lock(b.withTimeout(time.Hour))
		b.wantDuration(time.Since(began), outageTimeout, outageTimeout+2*callTimeout)
		b.wantError(err, ErrSlow, b.lock, "readers", "choose a longer TTL")
		if errors.Is(err, ErrLost) {
			b.Errorf("%v: no lease was held that could be lost", err)
		}
		b.noError(b.mustAcquire(b.user().rw(Config{}).TryRLock(b.Context())).Release(b.Context()))
	})
}

func TestCanceledPutReturnsHolder(t *testing.T) {
	inBubble(t, func(b *bubble) {
		l := b.mustAcquire(b.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		u := b.user()
		ctx, leave := context.WithCancel(b.Context())
		w := acquireInBackground(ctx, u.mutex(Config{TTL: ttl}).Acquire)
		sleep(time.Second)
		u.calls.Next(buckettest.Put, func(ctx context.Context, _ func(context.Context) error) error {
			leave()
			return noAnswer(ctx, nil)
		})
		b.noError(l.Release(b.Context()))
		<-w.done
		b.wantError(w.err, ErrHeld, b.lock)
		b.wantError(w.err, context.Canceled)
	})
}

func TestUnansweredListingsTimeOut(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		u.calls.Next(buckettest.List, slices.Repeat([]buckettest.Fault{noAnswer}, 100)...)
		began := time.Now()
		_, err := u.semaphore(2, Config{TTL: ttl}).Acquire(b.Context())
		b.wantError(err, bucket.ErrUnavailable, "s3://b/k.slots/")
		b.wantDuration(time.Since(began), outageTimeout, outageTimeout+2*callTimeout)
	})
}

func TestAnswersSlowerThanLease(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		slow := func(ctx context.Context, do func(context.Context) error) error {
			sleep(ttl - time.Second)
			return do(context.WithoutCancel(ctx))
		}
		u.calls.Next(buckettest.Put, slow, slow, slow)
		_, err := u.mutex(Config{TTL: ttl}).Acquire(b.Context())
		b.wantError(err, ErrSlow, b.lock, "choose a longer TTL")
		b.noError(b.mustAcquire(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}
