package lock

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

func TestSemaphoreLimit(t *testing.T) {
	inBubble(t, func(b *bubble) {
		const n = 3
		var leases []*Lease
		for range n {
			leases = append(leases, b.mustAcquire(b.user().semaphore(n, Config{TTL: ttl, Owner: "ann"}).Acquire(b.Context())))
		}
		_, err := b.user().semaphore(n, Config{TTL: ttl}).TryAcquire(b.Context())
		b.wantError(err, ErrHeld, "ann", "s3://b/k.slots/")
		w := acquireInBackground(b.Context(), b.user().semaphore(n, Config{TTL: ttl}).Acquire)
		sleep(10 * ttl)
		w.stillWaiting(b)
		b.noError(leases[1].Release(b.Context()))
		last := w.wait(b)
		b.wantDuration(w.after, 10*ttl, 10*ttl+2*time.Second)
		for _, l := range []*Lease{leases[0], leases[2], last} {
			b.noError(l.Context().Err())
			b.noError(l.Release(b.Context()))
		}
		if keys := b.keys(); len(keys) != n {
			b.Errorf("the bucket has %q, want %d slots", keys, n)
		}
	})
}

func TestDifferentLimitsExclude(t *testing.T) {
	inBubble(t, func(b *bubble) {
		l := b.mustAcquire(b.user().semaphore(2, Config{Owner: "ann"}).Acquire(b.Context()))
		for _, n := range []int{1, 3} {
			u := b.user()
			s := u.semaphore(n, Config{})
			for _, requests := range []string{"1 List, 1 Get", "1 List", "1 List"} {
				_, err := s.TryAcquire(b.Context())
				b.wantError(err, ErrHeld, "its limit is 2, not ", "all holders must use the same limit", "ann")
				u.wantRequests(requests)
			}
		}
		w := acquireInBackground(b.Context(), b.user().semaphore(3, Config{}).Acquire)
		sleep(2 * defaultTTL)
		w.stillWaiting(b)
		b.noError(l.Release(b.Context()))
		l = w.wait(b)
		_, err := b.user().semaphore(2, Config{}).TryAcquire(b.Context())
		b.wantError(err, ErrHeld)
		b.noError(l.Release(b.Context()))
	})
}

func TestExpiredSlotOfOtherLimit(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var left []*heldLease
		for range 2 {
			h, err := b.acquireSlotWithoutRenewal(2)
			b.noError(err)
			left = append(left, h)
		}
		w := acquireInBackground(b.Context(), b.user().semaphore(1, Config{TTL: ttl}).Acquire)
		b.noError(w.wait(b).Release(b.Context()))
		b.wantDuration(w.after, ttl+ttl*clockTolerance/100, ttl+ttl*clockTolerance/100+2*time.Second)
		for _, h := range left {
			b.wantError(h.renew(b.Context(), ttl), ErrLost)
		}
	})
}

func TestConcurrentTryAcquire(t *testing.T) {
	inBubble(t, func(b *bubble) {
		const users, n = 40, 100
		listed, tried, ended := make(chan struct{}), make(chan struct{}), make(chan error, users)
		var waiting atomic.Int64
		for range users {
			u := b.user()
			u.calls.Next(buckettest.List, func(ctx context.Context, do func(context.Context) error) error {
				err := do(ctx)
				if waiting.Add(1) == users {
					close(listed)
				}
				<-listed
				return err
			})
			s := u.semaphore(n, Config{TTL: ttl})
			go func() {
				l, err := s.TryAcquire(b.Context())
				if waiting.Add(-1) == 0 {
					close(tried)
				}
				<-tried // so that no contender acquires a released slot
				if err == nil {
					err = l.Release(b.Context())
				}
				ended <- err
			}()
		}
		for range users {
			b.noError(<-ended)
		}
	})
}

func TestSemaphoreWaitsForOutage(t *testing.T) {
	for name, acquire := range map[string]func(u *user) func(context.Context) (*Lease, error){
		"semaphore": func(u *user) func(context.Context) (*Lease, error) { return u.semaphore(1, Config{}).Acquire },
		"readers":   func(u *user) func(context.Context) (*Lease, error) { return u.rw(Config{}).RLock },
		"writers":   func(u *user) func(context.Context) (*Lease, error) { return u.rw(Config{}).Lock },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				u, began := b.user(), time.Now()
				down := func(ctx context.Context, do func(context.Context) error) error {
					if time.Since(began) < outageTimeout/2 {
						return bucket.ErrUnavailable
					}
					return do(ctx)
				}
				u.calls.Next(buckettest.List, slices.Repeat([]buckettest.Fault{down}, 10_000)...)
				b.noError(b.mustAcquire(acquire(u)(b.Context())).Release(b.Context()))
				b.wantDuration(time.Since(began), outageTimeout/2, outageTimeout/2+5*time.Second)
			})
		})
	}
}

// A holder with the same limit takes the slot over while it is being released.
func TestSlotOfOtherLimitIsTakenOver(t *testing.T) {
	inBubble(t, func(b *bubble) {
		_, err := b.acquireSlotWithoutRenewal(2)
		b.noError(err)
		u, o := b.user(), b.user()
		s, other := u.semaphore(3, Config{TTL: ttl}), o.semaphore(3, Config{TTL: ttl})
		for _, s := range []*Semaphore{s, other} {
			_, err = s.TryAcquire(b.Context())
			b.wantError(err, ErrHeld)
		}
		sleep(2 * ttl)
		var first *Lease
		u.calls.Next(buckettest.Put, buckettest.Between(func() { first = b.mustAcquire(other.TryAcquire(b.Context())) }))
		second := b.mustAcquire(s.TryAcquire(b.Context()))
		b.noError(first.Release(b.Context()))
		b.noError(second.Release(b.Context()))
	})
}

func TestCanceledSemaphoreReturnsHolder(t *testing.T) {
	inBubble(t, func(b *bubble) {
		l := b.mustAcquire(b.user().semaphore(1, Config{Owner: "ann"}).Acquire(b.Context()))
		_, err := b.user().semaphore(1, Config{}).Acquire(b.withTimeout(time.Minute))
		b.wantError(err, ErrHeld, "ann")
		b.wantError(err, context.DeadlineExceeded)
		u := b.user()
		u.calls.Next(buckettest.List, buckettest.Pass, noAnswer)
		_, err = u.semaphore(1, Config{}).Acquire(b.withTimeout(time.Minute))
		b.wantError(err, ErrHeld, "ann")
		b.wantError(err, context.DeadlineExceeded)
		b.noError(l.Release(b.Context()))
	})
}
