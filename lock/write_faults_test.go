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

// landsThenRefused simulates the refusal of a second copy that an SDK or a proxy has sent.
func landsThenRefused(kind error) buckettest.Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		if err := do(ctx); err != nil {
			return err
		}
		return fmt.Errorf("%w (a fault, after it landed)", kind)
	}
}

var writeFaults = map[string]buckettest.Fault{
	"landed, no answer":       buckettest.Landed,
	"lost":                    buckettest.Lost,
	"sent twice":              buckettest.Twice,
	"landed, answered by 409": landsThenRefused(bucket.ErrConflict),
	"landed, answered by 412": landsThenRefused(bucket.ErrPrecondition),
	"409":                     buckettest.Answer(bucket.ErrConflict),
	"412 for nothing":         buckettest.Answer(bucket.ErrPrecondition),
}

func TestFaultyWrites(t *testing.T) {
	for name, fault := range writeFaults {
		for kind, acquire := range map[string]func(*user) func(context.Context) (*Lease, error){
			"Mutex": func(u *user) func(context.Context) (*Lease, error) { return u.mutex(Config{TTL: ttl}).TryAcquire },
			"Semaphore": func(u *user) func(context.Context) (*Lease, error) {
				return u.semaphore(1, Config{TTL: ttl}).TryAcquire
			},
			"RLock": func(u *user) func(context.Context) (*Lease, error) { return u.rw(Config{TTL: ttl}).TryRLock },
			"Lock":  func(u *user) func(context.Context) (*Lease, error) { return u.rw(Config{TTL: ttl}).TryLock },
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				inBubble(t, func(b *bubble) {
					u := b.user()
					try := acquire(u)
					for range 3 {
						u.calls.Next(buckettest.Put, fault)
						l := b.mustAcquire(try(b.Context()))
						u.calls.Next(buckettest.Put, fault)
						sleep(ttl)
						b.noError(l.Context().Err())
						u.calls.Next(buckettest.Put, fault)
						b.noError(l.Release(b.Context()))
					}
				})
			})
		}
		t.Run("Update, "+name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				u := b.user()
				for range 3 {
					u.calls.Next(buckettest.Put, fault)
					got, err := u.update("a", UpdateConfig{Create: true})
					if b.noError(err); !got.Written {
						b.Errorf("%+v", got)
					}
				}
				b.wantContent("aaa")
			})
		})
	}
}

func TestCanceledAcquireReleasesLateWrite(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		ctx, cancel := context.WithCancel(b.Context())
		u.calls.Next(buckettest.Put, func(_ context.Context, do func(context.Context) error) error {
			b.noError(do(b.Context()))
			cancel()
			return fmt.Errorf("%w: %w", bucket.ErrUnclear, context.Canceled)
		})
		_, err := u.mutex(Config{TTL: ttl}).Acquire(ctx)
		b.wantError(err, context.Canceled)
		u.wantRequests("3 Get, 2 Put") // one read fails, a second read finds the lease, and a write releases it
		if rec, err := u.bucket.Show(b.Context(), "k"); err != nil || rec.State != Released {
			b.Errorf("left behind: %+v, %v", rec, err)
		}
		b.noError(b.mustAcquire(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}

func TestUnavailableStoreTimesOut(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		for range 1000 {
			u.calls.Next(buckettest.Get, buckettest.Answer(bucket.ErrUnavailable))
		}
		began := time.Now()
		_, err := u.mutex(Config{}).Acquire(b.Context())
		b.wantError(err, bucket.ErrUnavailable, b.lock)
		b.wantDuration(time.Since(began), outageTimeout, outageTimeout+10*time.Second)
		_, err = u.mutex(Config{}).Acquire(b.withTimeout(time.Second))
		b.wantError(err, context.DeadlineExceeded)
		b.wantError(err, bucket.ErrUnavailable)
		_, err = u.bucket.Show(b.Context(), "k")
		b.wantError(err, bucket.ErrUnavailable, onObject)
	})
}

func TestPermanentErrorsAreNotRetried(t *testing.T) {
	for _, kind := range []error{bucket.ErrDenied, bucket.ErrInvalid, bucket.ErrNoBucket} {
		for _, op := range []buckettest.Op{buckettest.Get, buckettest.Put} {
			onBoth(t, func(b *bubble) {
				u := b.user()
				began := time.Now()
				u.calls.Next(op, buckettest.Answer(kind))
				_, err := u.mutex(Config{}).Acquire(b.Context())
				b.wantError(err, kind, b.lock)
				b.wantDuration(time.Since(began), 0, 0)
				if keys := b.keys(); len(keys) > 0 || u.calls.Calls(buckettest.Put) > 1 {
					b.Errorf("%d writes, the bucket has %q", u.calls.Calls(buckettest.Put), keys)
				}
			})
		}
	}
}

func TestForceReleaseWithFaultyWrites(t *testing.T) {
	for name, fault := range writeFaults {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(b *bubble) {
				h := b.acquireWithoutRenewal(b.mutex(Config{TTL: ttl}))
				u := b.user()
				u.calls.Next(buckettest.Put, fault)
				rec, err := u.bucket.ForceRelease(b.Context(), "k", h.at.rec.Token)
				b.noError(err)
				now, err := u.bucket.Show(b.Context(), "k")
				if b.noError(err); rec.Nonce != now.Nonce || rec.State != Released || rec.Token != h.at.rec.Token+1 {
					b.Errorf("returned %+v, stored %+v", rec, now)
				}
			})
		})
	}
}

func TestForceReleaseDuringRenewal(t *testing.T) {
	onBoth(t, func(b *bubble) {
		h := b.acquireWithoutRenewal(b.mutex(Config{TTL: ttl}))
		u := b.user()
		u.calls.Next(buckettest.Put, buckettest.Between(func() { b.noError(h.renew(b.Context(), ttl)) }))
		rec, err := u.bucket.ForceRelease(b.Context(), "k", h.at.rec.Token)
		if b.noError(err); rec.State != Released {
			b.Errorf("%+v", rec)
		}
		b.wantError(h.renew(b.Context(), ttl), ErrLost)
	})
}

func TestHeldErrorText(t *testing.T) {
	for _, c := range []struct {
		rec  Record
		want string
	}{
		{Record{}, "s3://b/k: the lock is held"},
		{Record{Token: 1}, "s3://b/k: the lock is held by another process since 0001-01-01T00:00:00Z"},
		{
			Record{Token: 1, ID: "build 7"},
			`s3://b/k: the lock is held by another process as "build 7" since`,
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

func TestRenewalsStopAfterLoss(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		l := b.mustAcquire(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
		u.loseWrites()
		_, why := l.waitForEnd()
		b.wantError(why, ErrLost)
		synctest.Wait()
		select {
		case <-l.done:
		default:
			b.Error("the renewals continue")
		}
		made := u.calls.Calls(buckettest.Put)
		sleep(10 * ttl)
		if u.calls.Calls(buckettest.Put) != made {
			b.Error("it still writes")
		}
	})
}
