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

func TestASemaphoreHasSoManyHolders(t *testing.T) {
	inBubble(t, func(b *bubble) {
		const n = 3
		var leases []*Lease
		for range n {
			leases = append(leases, b.got(b.user().semaphore(n, Config{TTL: ttl, Owner: "ann"}).Acquire(b.Context())))
		}
		_, err := b.user().semaphore(n, Config{TTL: ttl}).TryAcquire(b.Context())
		b.refused(err, ErrHeld, "ann", "s3://b/k.slots/")
		w := begins(b.Context(), b.user().semaphore(n, Config{TTL: ttl}).Acquire)
		sleep(10 * ttl)
		w.outside(b)
		b.done(leases[1].Release(b.Context()))
		last := w.enters(b)
		b.about(w.after, 10*ttl, 10*ttl+2*time.Second)
		for _, l := range []*Lease{leases[0], leases[2], last} {
			b.done(l.Context().Err())
			b.done(l.Release(b.Context()))
		}
		if keys := b.keys(); len(keys) != n {
			b.Errorf("there is %q, want %d slots", keys, n)
		}
	})
}

// TestSemaphoresOfDifferentLimits exclude each other, however often one tries.
func TestSemaphoresOfDifferentLimits(t *testing.T) {
	inBubble(t, func(b *bubble) {
		l := b.got(b.user().semaphore(2, Config{Owner: "ann"}).Acquire(b.Context()))
		for _, n := range []int{1, 3} {
			u := b.user()
			s := u.semaphore(n, Config{})
			for _, requests := range []string{"1 List, 1 Get", "1 List", "1 List"} {
				_, err := s.TryAcquire(b.Context())
				b.refused(err, ErrHeld, "it counts to 2, and not to", "all must use the same limit", "ann")
				u.takes(requests)
			}
		}
		w := begins(b.Context(), b.user().semaphore(3, Config{}).Acquire)
		sleep(2 * defaultTTL)
		w.outside(b)
		b.done(l.Release(b.Context()))
		l = w.enters(b)
		_, err := b.user().semaphore(2, Config{}).TryAcquire(b.Context())
		b.refused(err, ErrHeld)
		b.done(l.Release(b.Context()))
	})
}

// TestASlotOfAnotherLimitLeftBehind: the limit was changed after a crash. It does
// not matter whether the slot is one that the new limit has.
func TestASlotOfAnotherLimitLeftBehind(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var left []*heldLease
		for range 2 {
			h, err := b.stoppedSlot(2)
			b.done(err)
			left = append(left, h)
		}
		w := begins(b.Context(), b.user().semaphore(1, Config{TTL: ttl}).Acquire)
		b.done(w.enters(b).Release(b.Context()))
		b.about(w.after, ttl+ttl*rate/100, ttl+ttl*rate/100+2*time.Second)
		for _, h := range left {
			b.refused(h.renew(b.Context(), ttl), ErrLost)
		}
	})
}

// TestManyTryAtOnce: whoever tries gets a slot, as long as there are enough.
func TestManyTryAtOnce(t *testing.T) {
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
				<-tried // so that nobody gets what another gave back
				if err == nil {
					err = l.Release(b.Context())
				}
				ended <- err
			}()
		}
		for range users {
			b.done(<-ended)
		}
	})
}

// TestASemaphoreInAnOutage waits until it is over.
func TestASemaphoreInAnOutage(t *testing.T) {
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
				b.done(b.got(acquire(u)(b.Context())).Release(b.Context()))
				b.about(time.Since(began), outageTimeout/2, outageTimeout/2+5*time.Second)
			})
		})
	}
}

// TestAStrangerThatIsNone: the slot of one of another limit is taken over, by one of
// the same limit, while it is ended.
func TestAStrangerThatIsNone(t *testing.T) {
	inBubble(t, func(b *bubble) {
		_, err := b.stoppedSlot(2)
		b.done(err)
		u, o := b.user(), b.user()
		s, other := u.semaphore(3, Config{TTL: ttl}), o.semaphore(3, Config{TTL: ttl})
		for _, s := range []*Semaphore{s, other} {
			_, err = s.TryAcquire(b.Context())
			b.refused(err, ErrHeld)
		}
		sleep(2 * ttl)
		var first *Lease
		u.calls.Next(buckettest.Put, buckettest.Between(func() { first = b.got(other.TryAcquire(b.Context())) }))
		second := b.got(s.TryAcquire(b.Context()))
		b.done(first.Release(b.Context()))
		b.done(second.Release(b.Context()))
	})
}

func TestASemaphoreThatGivesUp(t *testing.T) {
	inBubble(t, func(b *bubble) {
		l := b.got(b.user().semaphore(1, Config{Owner: "ann"}).Acquire(b.Context()))
		_, err := b.user().semaphore(1, Config{}).Acquire(b.within(time.Minute))
		b.refused(err, ErrHeld, "ann")
		b.refused(err, context.DeadlineExceeded)
		u := b.user()
		u.calls.Next(buckettest.List, buckettest.Pass, silent)
		_, err = u.semaphore(1, Config{}).Acquire(b.within(time.Minute))
		b.refused(err, ErrHeld, "ann")
		b.refused(err, context.DeadlineExceeded)
		b.done(l.Release(b.Context()))
	})
}
