package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

const ttl = 10 * time.Second

func (u *user) loseWrites() {
	for range 10_000 {
		u.calls.Next(buckettest.Put, buckettest.Lost)
	}
}

func (l *Lease) waitForEnd() (time.Time, error) {
	<-l.Context().Done()
	return time.Now(), context.Cause(l.Context())
}

func TestLeaseIsRenewed(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.mustAcquire(b.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		w := acquireInBackground(b.Context(), b.mutex(Config{TTL: ttl}).Acquire)
		for range 200 {
			sleep(ttl / 2)
			if left := time.Until(l.Deadline()); left <= ttl/2 || left > ttl {
				b.Fatalf("its deadline is in %v", left)
			}
		}
		w.stillWaiting(b)
		if err := l.Context().Err(); err != nil {
			b.Fatal(err)
		}
		if rec, err := b.user().bucket.Show(b.Context(), "k"); err != nil || rec.Token != l.Token() {
			b.Errorf("%+v, %v: want the token %d", rec, err, l.Token())
		}
		b.noError(l.Release(b.Context()))
		if _, err := l.waitForEnd(); !errors.Is(err, context.Canceled) || errors.Is(err, ErrLost) {
			b.Errorf("after its release its context ends with %v", err)
		}
		b.noError(w.wait(b).Release(b.Context()))
	})
}

// The next process acquires the lock soon after the end, and not earlier.
func TestLeaseEndsWhenWritesAreLost(t *testing.T) {
	for _, ttl := range []time.Duration{MinTTL, ttl, time.Minute, time.Hour} {
		onBoth(t, func(b *bubble) {
			u := b.user()
			l := b.mustAcquire(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
			w := acquireInBackground(b.Context(), b.mutex(Config{TTL: ttl}).Acquire)
			sleep(ttl + ttl/2)
			synctest.Wait()
			landed := l.Deadline().Add(ttl/cancelParts - ttl)
			u.loseWrites()
			at, why := l.waitForEnd()
			b.wantError(why, ErrLost, "could not be renewed", b.lock)
			if want := landed.Add(ttl - ttl/cancelParts); !at.Equal(want) || !at.Equal(l.Deadline()) {
				b.Errorf("it ends %v after its last renewal, want %v", at.Sub(landed), want.Sub(landed))
			}
			w.stillWaiting(b)
			second := w.wait(b)
			b.wantDuration(time.Since(landed), ttl+ttl*clockTolerance/100, ttl+ttl*clockTolerance/100+4*time.Second)
			if second.Token() <= l.Token() {
				b.Errorf("token %d after %d", second.Token(), l.Token())
			}
			b.wantError(l.Release(b.Context()), ErrLost)
			b.noError(second.Release(b.Context()))
		})
	}
}

func TestLeaseEndsWhenRenewalFails(t *testing.T) {
	for kind, fault := range map[error]buckettest.Fault{
		bucket.ErrDenied: buckettest.Answer(bucket.ErrDenied), bucket.ErrUnavailable: noAnswer,
	} {
		onBoth(t, func(b *bubble) {
			u := b.user()
			l := b.mustAcquire(u.mutex(Config{TTL: time.Minute}).Acquire(b.Context()))
			for range 1000 {
				u.calls.Next(buckettest.Put, fault)
			}
			at, why := l.waitForEnd()
			b.wantError(why, ErrLost)
			b.wantError(why, kind)
			if !at.Equal(l.Deadline()) {
				b.Errorf("it ended %v after its deadline", at.Sub(l.Deadline()))
			}
			b.wantError(l.Release(b.withTimeout(time.Second)), ErrLost)
		})
	}
}

// Timers stopped while the machine slept.
type suspendedClock struct {
	realClock
	slept *atomic.Int64
}

func (s suspendedClock) Now() time.Time { return time.Now().Add(time.Duration(s.slept.Load())) }

// The pending renewal need not time out first.
func TestLeaseEndsAfterSuspend(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		clock := suspendedClock{slept: new(atomic.Int64)}
		u.bucket.clock = clock
		l := b.mustAcquire(u.mutex(Config{TTL: time.Hour}).Acquire(b.Context()))
		for _, op := range []buckettest.Op{buckettest.Get, buckettest.Put} {
			u.calls.Next(op, slices.Repeat([]buckettest.Fault{noAnswer}, 100)...)
		}
		sleep(time.Hour/renewAfter + time.Second)
		clock.slept.Store(int64(time.Hour))
		woke := time.Now()
		at, why := l.waitForEnd()
		b.wantError(why, ErrLost, b.lock, "suspended")
		b.wantDuration(at.Sub(woke), 0, clockPoll)
		b.wantError(l.Release(b.withTimeout(time.Second)), ErrLost)
	})
}

func TestForceReleaseEndsLease(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.mustAcquire(b.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		other := b.user()
		_, err := other.bucket.ForceRelease(b.Context(), "k", l.Token()+1)
		b.wantError(err, ErrConfig, "it is held under the token", ", not under")
		b.noError(l.Context().Err())
		rec, err := other.bucket.ForceRelease(b.Context(), "k", l.Token())
		b.noError(err)
		if rec.State != Released || rec.Token != l.Token()+1 {
			b.Errorf("left behind: %+v", rec)
		}
		began := time.Now()
		at, why := l.waitForEnd()
		b.wantError(why, ErrLost, "released by another process")
		b.wantDuration(at.Sub(began), 0, ttl/renewAfter)
		b.wantError(l.Release(b.Context()), ErrLost)
		_, err = other.bucket.ForceRelease(b.Context(), "k", rec.Token)
		b.wantError(err, ErrConfig, "the lock is not held")
	})
}

func TestDeletedObjectEndsLease(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.mustAcquire(b.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		b.remove("k")
		_, why := l.waitForEnd()
		b.wantError(why, ErrLost, "its object was deleted")
		b.wantError(l.Release(b.Context()), ErrLost)
		if keys := b.keys(); len(keys) > 0 {
			b.Errorf("it wrote %q", keys)
		}
	})
}

func TestReleaseTwice(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		l := b.mustAcquire(u.mutex(Config{}).Acquire(b.Context()))
		b.noError(l.Release(b.Context()))
		was := b.content("k")
		u.wantRequests("1 Get, 2 Put")
		b.wantError(l.Release(b.Context()), ErrConfig, "already released")
		u.wantRequests("")
		if b.content("k") != was {
			b.Error("it wrote something")
		}
	})
}

func TestLockStaysHeldAfterContextEnds(t *testing.T) {
	onBoth(t, func(b *bubble) {
		ctx, cancel := context.WithCancelCause(b.Context())
		l := b.mustAcquire(b.mutex(Config{TTL: ttl}).Acquire(ctx))
		why := errors.New("enough")
		cancel(why)
		if _, err := l.waitForEnd(); !errors.Is(err, why) {
			b.Errorf("it ended with %v", err)
		}
		w := acquireInBackground(b.Context(), b.mutex(Config{TTL: ttl}).Acquire)
		sleep(5 * ttl)
		w.stillWaiting(b)
		b.noError(l.Release(b.Context()))
		b.noError(w.wait(b).Release(b.Context()))
	})
}

func TestUnansweredReleaseKeepsOthersOut(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl})
		l := b.mustAcquire(m.Acquire(b.Context()))
		u.calls.Next(buckettest.Put, buckettest.Hold(make(chan struct{}), make(chan struct{})))
		err := l.Release(b.withTimeout(time.Second))
		b.wantError(err, context.DeadlineExceeded, "no other process can acquire it until its lease expires")
		if errors.Is(err, ErrLost) {
			b.Errorf("error %v, but the lease was not lost", err)
		}
		_, err = b.mutex(Config{TTL: ttl}).TryAcquire(b.Context())
		b.wantError(err, ErrHeld)
		b.noError(b.mustAcquire(m.TryAcquire(b.Context())).Release(b.Context()))
	})
}

func TestReleaseDuringRenewal(t *testing.T) {
	for _, landing := range []string{"at once", "never", "during the release"} {
		t.Run(landing, func(t *testing.T) {
			onBoth(t, func(b *bubble) {
				u := b.user()
				l := b.mustAcquire(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
				var late func() error
				u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
					<-ctx.Done()
					switch late = func() error { return do(b.Context()) }; landing {
					case "at once":
						b.noError(late())
					case "during the release":
						u.calls.Next(buckettest.Put, buckettest.Between(func() { b.noError(late()) }))
					}
					return fmt.Errorf("%w: %w", bucket.ErrUnclear, ctx.Err())
				})
				sleep(ttl / 2)
				b.noError(l.Release(b.Context()))
				if rec, err := u.bucket.Show(b.Context(), "k"); err != nil || rec.State != Released || rec.Token != l.Token() {
					b.Errorf("left behind: %+v, %v", rec, err)
				}
				if landing == "never" {
					b.wantError(late(), bucket.ErrPrecondition)
				}
			})
		})
	}
}

// The read does not see the first copy of the renewal, and the second copy is refused. The TTL must
// start before that read.
func TestRenewalLandsDuringRead(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		h := b.acquireWithoutRenewal(u.mutex(Config{TTL: time.Minute}))
		var land func() error
		var landed time.Time
		u.calls.Next(buckettest.Put, buckettest.Late(&land))
		u.calls.Next(buckettest.Get, func(ctx context.Context, do func(context.Context) error) error {
			err := do(ctx)
			b.noError(land())
			landed = time.Now()
			sleep(time.Second)
			return err
		})
		sleep(20 * time.Second)
		b.noError(h.renew(b.Context(), 30*time.Second))
		if landed.IsZero() || h.sent.After(landed) {
			b.Errorf("the lease counts from %v after it had landed", h.sent.Sub(landed))
		}
	})
}
