package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

// refusedAfterwards lands, and is answered by a refusal: that of its second copy,
// which an SDK or a proxy has sent.
func refusedAfterwards(kind error) buckettest.Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		if err := do(ctx); err != nil {
			return err
		}
		return fmt.Errorf("%w (a fault, after it landed)", kind)
	}
}

// troubled are the troubles of a write.
var troubled = map[string]buckettest.Fault{
	"landed, no answer":       buckettest.Landed,
	"lost":                    buckettest.Lost,
	"sent twice":              buckettest.Twice,
	"landed, answered by 409": refusedAfterwards(bucket.ErrConflict),
	"landed, answered by 412": refusedAfterwards(bucket.ErrPrecondition),
	"409":                     buckettest.Answer(bucket.ErrConflict),
	"412 for nothing":         buckettest.Answer(bucket.ErrPrecondition),
}

// TestNobodyLosesToOneself: whatever becomes of the answers, the lock is not held
// by somebody else who is oneself.
func TestNobodyLosesToOneself(t *testing.T) {
	for name, fault := range troubled {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) { holdInTrouble(b, Config{TTL: ttl}, fault) })
		})
	}
}

// holdInTrouble acquires and releases a lock with each write in trouble.
func holdInTrouble(b *bubble, c Config, fault buckettest.Fault) {
	u := b.user()
	trouble := func() { u.calls.Next(buckettest.Put, fault) }
	m := u.mutex(c)
	var token int64
	for range 3 {
		trouble()
		l := b.got(m.TryAcquire(b.Context()))
		if l.Token() <= token {
			b.Errorf("token %d after %d", l.Token(), token)
		}
		token = l.Token()
		trouble() // of the renewal
		sleep(ttl)
		b.done(l.Context().Err())
		trouble()
		b.done(l.Release(b.Context()))
		if rec, err := u.bucket.Show(b.Context(), "k"); err != nil || rec.State != Released || rec.Token != token {
			b.Errorf("left behind: %+v, %v", rec, err)
		}
	}
}

// TestWritesThatLandLate: a copy of a write that was taken for lost lands when
// somebody else holds the lock, and changes nothing.
func TestWritesThatLandLate(t *testing.T) {
	onBoth(t, func(b *bubble) {
		b.done(b.got(b.mutex(Config{}).Acquire(b.Context())).Release(b.Context()))
		u := b.user()
		var acquire, release func() error
		u.calls.Next(buckettest.Put, buckettest.Late(&acquire), buckettest.Pass, buckettest.Late(&release))
		b.done(b.got(u.mutex(Config{}).Acquire(b.Context())).Release(b.Context()))
		l := b.got(b.mutex(Config{}).Acquire(b.Context()))
		was := b.content("k")
		b.refused(acquire(), bucket.ErrPrecondition)
		b.refused(release(), bucket.ErrPrecondition)
		if b.content("k") != was {
			b.Error("it landed")
		}
		b.done(l.Release(b.Context()))
	})
}

// TestAbandonedButLanded: who gives up while its write is under way must not keep
// the lock from others.
func TestAbandonedButLanded(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		ctx, cancel := context.WithCancel(b.Context())
		u.calls.Next(buckettest.Put, func(_ context.Context, do func(context.Context) error) error {
			b.done(do(b.Context()))
			cancel()
			return fmt.Errorf("%w: %w", bucket.ErrUnclear, context.Canceled)
		})
		_, err := u.mutex(Config{TTL: ttl}).Acquire(ctx)
		b.refused(err, context.Canceled)
		u.takes("3 Get, 2 Put") // it looks, also once in vain, and releases
		if rec, err := u.bucket.Show(b.Context(), "k"); err != nil || rec.State != Released {
			b.Errorf("left behind: %+v, %v", rec, err)
		}
		b.done(b.got(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}

// TestAbandonedAndLandsLate: it lands when nobody looks any more. The same Mutex
// has it at once, and the others when the lease is over.
func TestAbandonedAndLandsLate(t *testing.T) {
	for _, same := range []bool{true, false} {
		onBoth(t, func(b *bubble) {
			u := b.user()
			m := u.mutex(Config{TTL: ttl})
			ctx, cancel := context.WithCancel(b.Context())
			var land func() error
			u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
				defer cancel()
				return buckettest.Late(&land)(ctx, do)
			})
			_, err := m.Acquire(ctx)
			b.refused(err, context.Canceled)
			b.done(land())
			began := time.Now()
			if same {
				b.done(b.got(m.TryAcquire(b.Context())).Release(b.Context()))
				b.about(time.Since(began), 0, 0)
				return
			}
			_, err = b.mutex(Config{}).TryAcquire(b.Context())
			b.refused(err, ErrHeld)
			b.done(b.got(b.mutex(Config{}).Acquire(b.Context())).Release(b.Context()))
			b.about(time.Since(began), ttl+ttl*rate/100, ttl+ttl*rate/100+2*time.Second)
		})
	}
}

// TestAnAnswerThatComesTooLate: when the answer to the acquisition comes, its
// lease is over.
func TestAnAnswerThatComesTooLate(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		u.calls.Next(buckettest.Put, func(_ context.Context, do func(context.Context) error) error {
			b.done(do(b.Context()))
			sleep(2 * ttl)
			return nil
		})
		l := b.got(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		if left := time.Until(l.Deadline()); left < ttl/2 {
			b.Errorf("%v are left", left)
		}
		u.takes("1 Get, 2 Put")
		b.done(l.Release(b.Context()))
	})
}

// TestTheLeaseRunsFromWhenItWasSent, and not from its answer.
func TestTheLeaseRunsFromWhenItWasSent(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		sent := time.Now()
		u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
			b.done(do(ctx))
			sleep(3 * time.Second)
			return nil
		})
		l := b.got(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		if want := sent.Add(ttl - ttl/cancelParts); !l.Deadline().Equal(want) {
			b.Errorf("its deadline is %v off", l.Deadline().Sub(want))
		}
		b.done(l.Release(b.Context()))
	})
}

// TestAStoreThatNeverAnswers gives no lock, and no thread to wait for.
func TestAStoreThatNeverAnswers(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		for range 1000 {
			u.calls.Next(buckettest.Get, buckettest.Answer(bucket.ErrUnavailable))
		}
		began := time.Now()
		_, err := u.mutex(Config{}).Acquire(b.Context())
		b.refused(err, bucket.ErrUnavailable, b.lock)
		b.about(time.Since(began), outageTimeout, outageTimeout+10*time.Second)
		_, err = u.mutex(Config{}).Acquire(b.within(time.Second))
		b.refused(err, context.DeadlineExceeded)
		b.refused(err, bucket.ErrUnavailable)
		_, err = u.bucket.Show(b.Context(), "k")
		b.refused(err, bucket.ErrUnavailable, onObject)
	})
}

// TestRefusedForGood: nothing is written, and nobody waits.
func TestRefusedForGood(t *testing.T) {
	for _, kind := range []error{bucket.ErrDenied, bucket.ErrInvalid, bucket.ErrNoBucket} {
		for _, op := range []buckettest.Op{buckettest.Get, buckettest.Put} {
			onBoth(t, func(b *bubble) {
				u := b.user()
				began := time.Now()
				u.calls.Next(op, buckettest.Answer(kind))
				_, err := u.mutex(Config{}).Acquire(b.Context())
				b.refused(err, kind, b.lock)
				b.about(time.Since(began), 0, 0)
				if keys := b.keys(); len(keys) > 0 || u.calls.Calls(buckettest.Put) > 1 {
					b.Errorf("%d writes, there is %q", u.calls.Calls(buckettest.Put), keys)
				}
			})
		}
	}
}

// TestForceReleaseInTrouble: it tells the truth.
func TestForceReleaseInTrouble(t *testing.T) {
	for name, fault := range troubled {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(b *bubble) {
				h := b.stopped(b.mutex(Config{TTL: ttl}))
				u := b.user()
				u.calls.Next(buckettest.Put, fault)
				rec, err := u.bucket.ForceRelease(b.Context(), "k", h.at.rec.Token)
				b.done(err)
				now, err := u.bucket.Show(b.Context(), "k")
				if b.done(err); rec.Nonce != now.Nonce || rec.State != Released || rec.Token != h.at.rec.Token+1 {
					b.Errorf("it says %+v, and there is %+v", rec, now)
				}
			})
		})
	}
}

// TestForceReleaseOfOneWhoRenews is not kept out by the renewals.
func TestForceReleaseOfOneWhoRenews(t *testing.T) {
	onBoth(t, func(b *bubble) {
		h := b.stopped(b.mutex(Config{TTL: ttl}))
		u := b.user()
		u.calls.Next(buckettest.Put, buckettest.Between(func() { b.done(h.renew(b.Context(), ttl)) }))
		rec, err := u.bucket.ForceRelease(b.Context(), "k", h.at.rec.Token)
		if b.done(err); rec.State != Released {
			b.Errorf("%+v", rec)
		}
		b.refused(h.renew(b.Context(), ttl), ErrLost)
	})
}

func TestWhatAWaiterIsTold(t *testing.T) {
	for _, c := range []struct {
		rec  Record
		want string
	}{
		{Record{}, "s3://b/k: the lock is held"},
		{Record{Token: 1}, "s3://b/k: the lock is held by somebody since 0001-01-01T00:00:00Z"},
		{
			Record{Token: 1, ID: "build 7"},
			`s3://b/k: the lock is held by somebody as "build 7" since`,
		},
		{
			Record{Token: 1, Owner: "ann\n", Host: "h 1", PID: 7, Reason: "why not", Since: epoch},
			`s3://b/k: the lock is held by "ann\n" on "h 1" (pid 7) since 2026-01-01T00:00:00Z: "why not"`,
		},
	} {
		err := &HeldError{Lock: onObject, Record: c.rec}
		if got := err.Error(); !strings.HasPrefix(got, c.want) || !errors.Is(err, ErrHeld) {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// TestNothingIsLeftRunning: a lease that nobody releases renews itself for ever,
// and one that is lost does not.
func TestNothingIsLeftRunning(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		l := b.got(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		u.down()
		_, why := l.ends()
		b.refused(why, ErrLost)
		synctest.Wait()
		select {
		case <-l.done:
		default:
			b.Error("its renewals go on")
		}
		made := u.calls.Calls(buckettest.Put)
		sleep(10 * ttl)
		if u.calls.Calls(buckettest.Put) != made {
			b.Error("it writes still")
		}
	})
}
