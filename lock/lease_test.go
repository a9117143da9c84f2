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

// ttl is that of most locks in these tests.
const ttl = 10 * time.Second

// down lets every write from now on get lost, and says when the last one landed
// before.
func (u *user) down() {
	for range 10_000 {
		u.calls.Next(buckettest.Put, buckettest.Lost)
	}
}

// ends waits until a lease's context does, and returns when and why.
func (l *Lease) ends() (time.Time, error) {
	<-l.Context().Done()
	return time.Now(), context.Cause(l.Context())
}

func TestALeaseIsRenewed(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.got(b.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		w := begins(b.Context(), b.mutex(Config{TTL: ttl}).Acquire)
		for range 200 {
			sleep(ttl / 2)
			if left := time.Until(l.Deadline()); left <= ttl/2 || left > ttl {
				b.Fatalf("its deadline is in %v", left)
			}
		}
		w.outside(b)
		if err := l.Context().Err(); err != nil {
			b.Fatal(err)
		}
		if rec, err := b.user().bucket.Show(b.Context(), "k"); err != nil || rec.Token != l.Token() {
			b.Errorf("%+v, %v: want the token %d", rec, err, l.Token())
		}
		b.done(l.Release(b.Context()))
		if _, err := l.ends(); !errors.Is(err, context.Canceled) || errors.Is(err, ErrLost) {
			b.Errorf("after its release its context ends with %v", err)
		}
		b.done(w.enters(b).Release(b.Context()))
	})
}

// TestALeaseOfAFailingStore checks that a lease whose renewals get lost ends on
// time, and that nobody enters before that, nor long after.
func TestALeaseOfAFailingStore(t *testing.T) {
	for _, ttl := range []time.Duration{MinTTL, ttl, time.Minute, time.Hour} {
		onBoth(t, func(b *bubble) {
			u := b.user()
			l := b.got(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
			w := begins(b.Context(), b.mutex(Config{TTL: ttl}).Acquire)
			sleep(ttl + ttl/2)
			synctest.Wait()
			landed := l.Deadline().Add(ttl/cancelParts - ttl)
			u.down()
			at, why := l.ends()
			b.refused(why, ErrLost, "could not be renewed", b.lock)
			if want := landed.Add(ttl - ttl/cancelParts); !at.Equal(want) || !at.Equal(l.Deadline()) {
				b.Errorf("it ends %v after its last renewal, want %v", at.Sub(landed), want.Sub(landed))
			}
			w.outside(b)
			second := w.enters(b)
			b.about(time.Since(landed), ttl+ttl*rate/100, ttl+ttl*rate/100+4*time.Second)
			if second.Token() <= l.Token() {
				b.Errorf("token %d after %d", second.Token(), l.Token())
			}
			b.refused(l.Release(b.Context()), ErrLost)
			b.done(second.Release(b.Context()))
		})
	}
}

// TestALeaseThatIsRefused: its renewals are denied, or get no answer.
func TestALeaseThatIsRefused(t *testing.T) {
	for kind, fault := range map[error]buckettest.Fault{
		bucket.ErrDenied: buckettest.Answer(bucket.ErrDenied), bucket.ErrUnavailable: silent,
	} {
		onBoth(t, func(b *bubble) {
			u := b.user()
			l := b.got(u.mutex(Config{TTL: time.Minute}).Acquire(b.Context()))
			for range 1000 {
				u.calls.Next(buckettest.Put, fault)
			}
			at, why := l.ends()
			b.refused(why, ErrLost)
			b.refused(why, kind)
			if !at.Equal(l.Deadline()) {
				b.Errorf("it ended %v after its deadline", at.Sub(l.Deadline()))
			}
			b.refused(l.Release(b.within(time.Second)), ErrLost)
		})
	}
}

// sleeper is the clock of a machine that has slept: its timers have not run on.
type sleeper struct {
	realClock
	slept *atomic.Int64
}

func (s sleeper) Now() time.Time { return time.Now().Add(time.Duration(s.slept.Load())) }

// TestASleepDuringARenewal: the lease is over when the machine wakes, and not when
// the renewal under way has had its time.
func TestASleepDuringARenewal(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		clock := sleeper{slept: new(atomic.Int64)}
		u.bucket.clock = clock
		l := b.got(u.mutex(Config{TTL: time.Hour}).Acquire(b.Context()))
		for _, op := range []buckettest.Op{buckettest.Get, buckettest.Put} {
			u.calls.Next(op, slices.Repeat([]buckettest.Fault{silent}, 100)...)
		}
		sleep(time.Hour/renewAfter + time.Second)
		clock.slept.Store(int64(time.Hour))
		woke := time.Now()
		at, why := l.ends()
		b.refused(why, ErrLost, b.lock, "stood still")
		b.about(at.Sub(woke), 0, clockPoll)
		b.refused(l.Release(b.within(time.Second)), ErrLost)
	})
}

func TestForceReleaseEndsALease(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.got(b.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		other := b.user()
		_, err := other.bucket.ForceRelease(b.Context(), "k", l.Token()+1)
		b.refused(err, ErrConfig, "it is held under the token", "and not under")
		b.done(l.Context().Err())
		rec, err := other.bucket.ForceRelease(b.Context(), "k", l.Token())
		b.done(err)
		if rec.State != Released || rec.Token != l.Token()+1 {
			b.Errorf("left behind: %+v", rec)
		}
		began := time.Now()
		at, why := l.ends()
		b.refused(why, ErrLost, "released by somebody else")
		b.about(at.Sub(began), 0, ttl/renewAfter)
		b.refused(l.Release(b.Context()), ErrLost)
		_, err = other.bucket.ForceRelease(b.Context(), "k", rec.Token)
		b.refused(err, ErrConfig, "nobody holds it")
	})
}

func TestADeletedLease(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.got(b.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		b.remove("k")
		_, why := l.ends()
		b.refused(why, ErrLost, "its object was deleted")
		b.refused(l.Release(b.Context()), ErrLost)
		if keys := b.keys(); len(keys) > 0 {
			b.Errorf("it wrote %q", keys)
		}
	})
}

func TestReleaseTwice(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		l := b.got(u.mutex(Config{}).Acquire(b.Context()))
		b.done(l.Release(b.Context()))
		was := b.content("k")
		u.takes("1 Get, 2 Put")
		b.refused(l.Release(b.Context()), ErrConfig, "released before")
		u.takes("")
		if b.content("k") != was {
			b.Error("it wrote something")
		}
	})
}

func TestALeaseEndsWithItsContext(t *testing.T) {
	onBoth(t, func(b *bubble) {
		ctx, cancel := context.WithCancelCause(b.Context())
		l := b.got(b.mutex(Config{TTL: ttl}).Acquire(ctx))
		why := errors.New("enough")
		cancel(why)
		if _, err := l.ends(); !errors.Is(err, why) {
			b.Errorf("it ended with %v", err)
		}
		w := begins(b.Context(), b.mutex(Config{TTL: ttl}).Acquire)
		sleep(5 * ttl)
		w.outside(b) // until its release it is held
		b.done(l.Release(b.Context()))
		b.done(w.enters(b).Release(b.Context()))
	})
}

// TestAReleaseThatIsNotAnswered: the lock is one's own until the lease is over.
func TestAReleaseThatIsNotAnswered(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl})
		l := b.got(m.Acquire(b.Context()))
		u.calls.Next(buckettest.Put, buckettest.Hold(make(chan struct{}), make(chan struct{})))
		err := l.Release(b.within(time.Second))
		b.refused(err, context.DeadlineExceeded, "nobody else can enter until its lease is over")
		if errors.Is(err, ErrLost) {
			b.Errorf("%v: it was not lost", err)
		}
		_, err = b.mutex(Config{TTL: ttl}).TryAcquire(b.Context())
		b.refused(err, ErrHeld)
		b.done(b.got(m.TryAcquire(b.Context())).Release(b.Context())) // the same Mutex need not wait
	})
}

// TestAReleaseDuringARenewal: the renewal is cut off, and lands all the same, or
// not, or lands when the release is under way.
func TestAReleaseDuringARenewal(t *testing.T) {
	for _, landing := range []string{"at once", "never", "during the release"} {
		t.Run(landing, func(t *testing.T) {
			onBoth(t, func(b *bubble) {
				u := b.user()
				l := b.got(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
				var late func() error
				u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
					<-ctx.Done()
					switch late = func() error { return do(b.Context()) }; landing {
					case "at once":
						b.done(late())
					case "during the release":
						u.calls.Next(buckettest.Put, buckettest.Between(func() { b.done(late()) }))
					}
					return fmt.Errorf("%w: %w", bucket.ErrUnclear, ctx.Err())
				})
				sleep(ttl / 2)
				b.done(l.Release(b.Context()))
				if rec, err := u.bucket.Show(b.Context(), "k"); err != nil || rec.State != Released || rec.Token != l.Token() {
					b.Errorf("left behind: %+v, %v", rec, err)
				}
				if landing == "never" {
					b.refused(late(), bucket.ErrPrecondition)
				}
			})
		})
	}
}

// TestALeaseThatLandsWhileOneLooks: the look is on its way back when the first copy
// lands, and so the second is refused. The lease runs since before the look.
func TestALeaseThatLandsWhileOneLooks(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		h := b.stopped(u.mutex(Config{TTL: time.Minute}))
		var land func() error
		var landed time.Time
		u.calls.Next(buckettest.Put, buckettest.Late(&land))
		u.calls.Next(buckettest.Get, func(ctx context.Context, do func(context.Context) error) error {
			err := do(ctx)
			b.done(land())
			landed = time.Now()
			sleep(time.Second)
			return err
		})
		sleep(20 * time.Second)
		b.done(h.renew(b.Context(), 30*time.Second))
		if landed.IsZero() || h.sent.After(landed) {
			b.Errorf("the lease counts from %v after it had landed", h.sent.Sub(landed))
		}
	})
}
