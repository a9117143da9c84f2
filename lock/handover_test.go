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

func TestGoroutinesTakeTurns(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{})
		l := b.mustAcquire(m.Acquire(b.Context()))
		const waiters = 5
		var order []int
		var tokens []int64
		ended := make(chan error)
		for i := range waiters {
			go func() {
				l, err := m.Acquire(b.Context())
				if err == nil {
					order, tokens = append(order, i), append(tokens, l.Token())
					sleep(time.Second)
					err = errors.Join(l.Context().Err(), l.Release(b.Context()))
				}
				ended <- err
			}()
			synctest.Wait()
		}
		u.wantRequests("1 Get, 1 Put")
		first := l.Token()
		b.noError(l.Release(b.Context()))
		for range waiters {
			b.noError(<-ended)
		}
		u.wantRequests(fmt.Sprintf("%d Put", waiters+1)) // including the release
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4}, order); diff != "" {
			b.Errorf("order of entry (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int64{first + 1, first + 2, first + 3, first + 4, first + 5}, tokens); diff != "" {
			b.Errorf("tokens (-want +got):\n%s", diff)
		}
		b.noError(b.mustAcquire(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}

func TestProcessYieldsToOthers(t *testing.T) {
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
			w := acquireInBackground(b.Context(), b.mutex(Config{TTL: ttl}).Acquire)
			l := w.wait(b)
			b.wantDuration(w.after, 0, 2*ttl+4*time.Second)
			b.noError(l.Release(b.Context()))
		}
		stop()
		for range 3 {
			<-ended
		}
		b.noError(b.mustAcquire(b.mutex(Config{TTL: ttl}).Acquire(b.Context())).Release(b.Context()))
	})
}

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
		w := acquireInBackground(b.withTimeout(time.Hour), b.mutex(Config{}).Acquire)
		<-w.done
		stop()
		<-ended
		<-ended
		b.noError(w.err)
		b.wantDuration(w.after, 0, maxHandOvers*10*time.Millisecond+4*time.Second)
		b.noError(w.lease.Release(b.Context()))
	})
}

func TestRepeatedAcquireYieldsToOthers(t *testing.T) {
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
					w := acquireInBackground(b.withTimeout(time.Minute), acquire(b.user()))
					l := w.wait(b)
					b.wantDuration(w.after, 0, 2*ttl+4*time.Second)
					b.noError(l.Release(b.Context()))
				}
			})
		})
	}
}

// The goroutine must not wait for other processes, because it holds the lock.
func TestHandOverWhileYielding(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{TTL: time.Hour})
		l := b.mustAcquire(m.Acquire(b.Context()))
		sleep(2 * time.Hour)
		b.noError(l.Release(b.Context()))
		b.noError(b.mustAcquire(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
		l = b.mustAcquire(m.TryAcquire(b.Context()))
		w := acquireInBackground(b.withTimeout(time.Second), m.Acquire)
		synctest.Wait()
		b.noError(l.Release(b.Context()))
		b.noError(w.wait(b).Release(b.Context()))
		b.wantDuration(w.after, 0, 0)
	})
}

func TestSoleUserWaitsLittle(t *testing.T) {
	for _, ttl := range []time.Duration{MinTTL, ttl, time.Minute} {
		onBoth(t, func(b *bubble) {
			m := b.mutex(Config{TTL: ttl})
			began, worked := time.Now(), time.Duration(0)
			for time.Since(began) < soleUserTime {
				l := b.mustAcquire(m.Acquire(b.Context()))
				sleep(100 * time.Millisecond)
				worked += 100 * time.Millisecond
				b.noError(l.Release(b.Context()))
			}
			if took := time.Since(began); worked < took*9/10 {
				b.Errorf("TTL %v: in %v the holder worked only %v", ttl, took, worked)
			}
		})
	}
}

func TestCanceledAcquireDoesNotCountAsTenure(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl})
		ctx, leave := context.WithCancel(b.Context())
		u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
			leave()
			return buckettest.Landed(context.WithoutCancel(ctx), do)
		})
		_, err := m.Acquire(ctx)
		b.wantError(err, context.Canceled)
		began := time.Now()
		l := b.mustAcquire(m.Acquire(b.Context()))
		b.wantDuration(time.Since(began), 0, 0)
		b.noError(l.Release(b.Context()))
	})
}

// The turn inherited the lock.
func TestCanceledTurnKeepsTenure(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl})
		l := b.mustAcquire(m.Acquire(b.Context()))
		began := time.Now()
		ctx, leave := context.WithCancel(b.Context())
		next := acquireInBackground(ctx, m.Acquire)
		sleep(5 * time.Second)
		u.calls.Next(buckettest.Put, func(context.Context, func(context.Context) error) error {
			leave()
			return bucket.ErrUnclear
		})
		b.noError(l.Release(b.Context()))
		<-next.done
		b.wantError(next.err, context.Canceled)
		b.noError(b.mustAcquire(m.Acquire(b.Context())).Release(b.Context()))
		if !m.tenure.since.Equal(began) {
			b.Errorf("its stay began %v after the first one", m.tenure.since.Sub(began))
		}
	})
}

func TestCanceledTurnReleasesLock(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl})
		l := b.mustAcquire(m.Acquire(b.Context()))
		_, err := m.Acquire(b.withTimeout(time.Minute))
		b.wantError(err, ErrHeld, b.lock)
		b.wantError(err, context.DeadlineExceeded)
		_, err = m.TryAcquire(b.Context())
		b.wantError(err, ErrHeld)

		ctx, cancel := context.WithCancel(b.Context())
		w := acquireInBackground(ctx, m.Acquire)
		synctest.Wait()
		u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
			cancel()
			return buckettest.Lost(ctx, do)
		})
		b.noError(l.Release(b.Context()))
		<-w.done
		b.wantError(w.err, context.Canceled)
		b.noError(b.mustAcquire(b.mutex(Config{TTL: ttl}).TryAcquire(b.Context())).Release(b.Context()))
		b.noError(b.mustAcquire(m.Acquire(b.Context())).Release(b.Context()))
	})
}

func TestCanceledYieldReturnsHeldError(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{TTL: ttl})
		l := b.mustAcquire(m.Acquire(b.Context()))
		sleep(2 * ttl)
		w := acquireInBackground(b.withTimeout(time.Second), m.Acquire)
		synctest.Wait()
		b.noError(l.Release(b.Context()))
		<-w.done
		b.wantError(w.err, context.DeadlineExceeded)
		b.wantError(w.err, ErrHeld)
	})
}

// If the process passed the lease on, a canceled goroutine could not release it.
func TestUnclearRenewalIsNotHandedOver(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: time.Hour})
		h, err := m.enter(b.Context(), true)
		b.noError(err)
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
		w := acquireInBackground(ctx, m.Acquire)
		synctest.Wait()
		cancel()
		b.noError(m.release(b.Context(), h, nil))
		<-w.done
		b.wantError(w.err, context.Canceled)
		b.noError(b.mustAcquire(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}

func TestExpiredLeaseIsNotHandedOver(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{TTL: ttl})
		h, err := m.enter(b.Context(), true)
		b.noError(err)
		next := acquireInBackground(b.Context(), m.Acquire)
		other := b.mustAcquire(b.mutex(Config{TTL: time.Minute}).Acquire(b.Context()))
		m.tenure.since = time.Now() // so that the tenure has just begun
		b.wantError(m.release(b.Context(), h, nil), ErrLost)
		next.stillWaiting(b)
		b.noError(other.Release(b.Context()))
		b.noError(next.wait(b).Release(b.Context()))
	})
}

func TestIgnoredNoncesAreForgotten(t *testing.T) {
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
			b.wantError(err, context.Canceled)
		}
		if len(m.ignored) == 0 {
			b.Error("nothing was given up")
		}
		b.noError(b.mustAcquire(m.Acquire(b.Context())).Release(b.Context()))
		if n := len(m.ignored); n > 0 {
			b.Errorf("%d writes are remembered", n)
		}
	})
}
