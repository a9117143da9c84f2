package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

// TestTurnsOfOneProcess: its goroutines go in order, and hand the lock on with one
// request for each.
func TestTurnsOfOneProcess(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{})
		l := b.got(m.Acquire(b.Context()))
		const waiters = 5
		var order []int
		var tokens []int64
		ended := make(chan error)
		for i := range waiters {
			go func() {
				l, err := m.Acquire(b.Context())
				if err == nil {
					order, tokens = append(order, i), append(tokens, l.Token()) // the lock guards them
					sleep(time.Second)
					err = errors.Join(l.Context().Err(), l.Release(b.Context()))
				}
				ended <- err
			}()
			synctest.Wait()
		}
		u.takes("1 Get, 1 Put")
		first := l.Token()
		b.done(l.Release(b.Context()))
		for range waiters {
			b.done(<-ended)
		}
		u.takes(fmt.Sprintf("%d Put", waiters+1)) // and the release
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4}, order); diff != "" {
			b.Errorf("order of entry (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int64{first + 1, first + 2, first + 3, first + 4, first + 5}, tokens); diff != "" {
			b.Errorf("tokens (-want +got):\n%s", diff)
		}
		b.done(b.got(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}

// TestAProcessLetsOthersIn: after 20 s those of other processes have a chance.
func TestAProcessLetsOthersIn(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{TTL: ttl})
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan struct{})
		for range 3 {
			go func() {
				defer func() { ended <- struct{}{} }()
				for ctx.Err() == nil {
					if l, err := m.Acquire(ctx); err == nil {
						sleep(100 * time.Millisecond)
						if err := l.Release(b.Context()); err != nil {
							b.Error(err)
						}
					}
				}
			}()
		}
		sleep(time.Second)
		for range 3 {
			w := begins(b.Context(), b.mutex(Config{TTL: ttl}).Acquire)
			l := w.enters(b)
			b.about(w.after, 0, 2*ttl+4*time.Second)
			b.done(l.Release(b.Context()))
		}
		stop()
		for range 3 {
			<-ended
		}
		b.done(b.got(b.mutex(Config{TTL: ttl}).Acquire(b.Context())).Release(b.Context()))
	})
}

// TestHandOversAreBounded: a long TTL does not keep other processes out, because the
// goroutines of one process hand the lock on at most maxHandOvers times.
func TestHandOversAreBounded(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{TTL: MaxTTL})
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan struct{})
		for range 2 {
			go func() {
				defer func() { ended <- struct{}{} }()
				for ctx.Err() == nil {
					if l, err := m.Acquire(ctx); err == nil {
						sleep(10 * time.Millisecond)
						if err := l.Release(b.Context()); err != nil {
							b.Error(err)
						}
					}
				}
			}()
		}
		sleep(time.Second)
		w := begins(b.within(time.Hour), b.mutex(Config{}).Acquire)
		<-w.entered
		stop()
		<-ended
		<-ended
		b.done(w.err)
		b.about(w.after, 0, maxHandOvers*10*time.Millisecond+4*time.Second)
		b.done(w.lease.Release(b.Context()))
	})
}

// TestOneThatComesAgainAndAgain has the lock for no longer, either.
func TestOneThatComesAgainAndAgain(t *testing.T) {
	for name, acquire := range map[string]func(*user) func(context.Context) (*Lease, error){
		"Acquire": func(u *user) func(context.Context) (*Lease, error) { return u.mutex(Config{TTL: ttl}).Acquire },
		"Lock":    func(u *user) func(context.Context) (*Lease, error) { return u.rw(Config{TTL: ttl}).Lock },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				u := b.user()
				again, ended := acquire(u), make(chan struct{})
				ctx, stop := context.WithCancel(b.Context())
				go func() {
					defer close(ended)
					for ctx.Err() == nil {
						if l, err := again(ctx); err == nil {
							sleep(100 * time.Millisecond)
							if err := l.Release(b.Context()); err != nil {
								b.Error(err)
							}
						}
					}
				}()
				defer func() {
					stop()
					<-ended
				}()
				sleep(time.Second)
				for range 3 {
					w := begins(b.within(time.Minute), acquire(b.user()))
					l := w.enters(b)
					b.about(w.after, 0, 2*ttl+4*time.Second)
					b.done(l.Release(b.Context()))
				}
			})
		})
	}
}

// TestLeftInTheBreak leaves the lock to one who would let others go first: with it in
// hand nobody else could.
func TestLeftInTheBreak(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{TTL: time.Hour})
		l := b.got(m.Acquire(b.Context()))
		sleep(2 * time.Hour)
		b.done(l.Release(b.Context()))
		b.done(b.got(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
		l = b.got(m.TryAcquire(b.Context()))
		w := begins(b.within(time.Second), m.Acquire)
		synctest.Wait()
		b.done(l.Release(b.Context()))
		b.done(w.enters(b).Release(b.Context()))
		b.about(w.after, 0, 0)
	})
}

// TestALoneUser loses little time to letting others in who are not there.
func TestALoneUser(t *testing.T) {
	for _, ttl := range []time.Duration{MinTTL, ttl, time.Minute} {
		onBoth(t, func(b *bubble) {
			m := b.mutex(Config{TTL: ttl})
			began, worked := time.Now(), time.Duration(0)
			for time.Since(began) < aloneFor {
				l := b.got(m.Acquire(b.Context()))
				sleep(100 * time.Millisecond)
				worked += 100 * time.Millisecond
				b.done(l.Release(b.Context()))
			}
			if took := time.Since(began); worked < took*9/10 {
				b.Errorf("TTL %v: of %v it worked %v", ttl, took, worked)
			}
		})
	}
}

// TestAnAcquisitionThatIsGivenUp does not count as a stay: the next one enters at once.
func TestAnAcquisitionThatIsGivenUp(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl})
		ctx, leave := context.WithCancel(b.Context())
		u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
			leave()
			return buckettest.Landed(context.WithoutCancel(ctx), do)
		})
		_, err := m.Acquire(ctx)
		b.refused(err, context.Canceled)
		began := time.Now()
		l := b.got(m.Acquire(b.Context()))
		b.about(time.Since(began), 0, 0)
		b.done(l.Release(b.Context()))
	})
}

// TestATurnInVain gives up what was handed on: it makes no new stay of the old one.
func TestATurnInVain(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl})
		l := b.got(m.Acquire(b.Context()))
		began := time.Now()
		ctx, leave := context.WithCancel(b.Context())
		next := begins(ctx, m.Acquire)
		sleep(5 * time.Second)
		u.calls.Next(buckettest.Put, func(context.Context, func(context.Context) error) error {
			leave()
			return bucket.ErrUnclear
		})
		b.done(l.Release(b.Context()))
		<-next.entered
		b.refused(next.err, context.Canceled)
		b.done(b.got(m.Acquire(b.Context())).Release(b.Context()))
		if !m.stay.since.Equal(began) {
			b.Errorf("its stay began %v after the first one", m.stay.since.Sub(began))
		}
	})
}

// TestATurnThatIsGivenUp leaves the lock to others.
func TestATurnThatIsGivenUp(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl})
		l := b.got(m.Acquire(b.Context()))
		_, err := m.Acquire(b.within(time.Minute))
		b.refused(err, ErrHeld, b.lock)
		b.refused(err, context.DeadlineExceeded)
		_, err = m.TryAcquire(b.Context())
		b.refused(err, ErrHeld)

		// The lock is left to one who gives up in the same moment.
		ctx, cancel := context.WithCancel(b.Context())
		w := begins(ctx, m.Acquire)
		synctest.Wait()
		u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
			cancel()
			return buckettest.Lost(ctx, do)
		})
		b.done(l.Release(b.Context()))
		<-w.entered
		b.refused(w.err, context.Canceled)
		b.done(b.got(b.mutex(Config{TTL: ttl}).TryAcquire(b.Context())).Release(b.Context()))
		b.done(b.got(m.Acquire(b.Context())).Release(b.Context()))
	})
}

// TestATurnAfterALongOne waits until others had their chance, and is told who holds
// the lock if it gives up meanwhile.
func TestATurnAfterALongOne(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{TTL: ttl})
		l := b.got(m.Acquire(b.Context()))
		sleep(2 * ttl)
		w := begins(b.within(time.Second), m.Acquire)
		synctest.Wait()
		b.done(l.Release(b.Context()))
		<-w.entered
		b.refused(w.err, context.DeadlineExceeded)
		b.refused(w.err, ErrHeld)
	})
}

// TestATurnBesideARenewal: whose renewal has an unknown fate does not hand the lock
// on as it is, for who gives up in the same moment could not release it.
func TestATurnBesideARenewal(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: time.Hour})
		h, err := m.enter(b.Context(), true)
		b.done(err)
		ctx, cancel := context.WithCancel(b.Context())
		u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
			cancel()
			return buckettest.Landed(context.WithoutCancel(ctx), do)
		})
		u.calls.Next(buckettest.Get, buckettest.Answer(bucket.ErrUnavailable))
		if err := h.renew(ctx, time.Minute); err == nil || h.renewal == nil {
			b.Fatalf("the renewal has ended, %v", err)
		}
		ctx, cancel = context.WithCancel(b.Context())
		w := begins(ctx, m.Acquire)
		synctest.Wait()
		cancel()
		b.done(m.release(b.Context(), h, nil))
		<-w.entered
		b.refused(w.err, context.Canceled)
		b.done(b.got(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}

// TestALateLockIsNotHandedOn: the store is asked whose it is.
func TestALateLockIsNotHandedOn(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{TTL: ttl})
		h, err := m.enter(b.Context(), true)
		b.done(err)
		next := begins(b.Context(), m.Acquire)
		other := b.got(b.mutex(Config{TTL: time.Minute}).Acquire(b.Context())) // who has waited for the TTL
		m.stay.since = time.Now()                                              // as if this process had not had it for long
		b.refused(m.release(b.Context(), h, nil), ErrLost)
		next.outside(b)
		b.done(other.Release(b.Context()))
		b.done(next.enters(b).Release(b.Context()))
	})
}

// TestManyGivenUp: what never landed is forgotten with the next lock that one gets.
func TestManyGivenUp(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl})
		for range 100 {
			ctx, leave := context.WithCancel(b.Context())
			u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
				leave()
				return buckettest.Lost(ctx, do)
			})
			_, err := m.Acquire(ctx)
			b.refused(err, context.Canceled)
		}
		if len(m.ignored) == 0 {
			b.Error("nothing was given up")
		}
		b.done(b.got(m.Acquire(b.Context())).Release(b.Context()))
		if n := len(m.ignored); n > 0 {
			b.Errorf("%d writes are remembered", n)
		}
	})
}
