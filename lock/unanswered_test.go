package lock

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

// The TTL leaves enough time to read and to send again.
func TestUnansweredRequestIsRetried(t *testing.T) {
	landed := func(ctx context.Context, do func(context.Context) error) error {
		_ = do(ctx)
		return noAnswer(ctx, nil)
	}
	for name, fault := range map[string]buckettest.Fault{"request lost": noAnswer, "answer lost": landed} {
		for _, ttl := range []time.Duration{3 * time.Second, 10 * time.Second, 18 * time.Second, time.Hour} {
			t.Run(name+", "+ttl.String(), func(t *testing.T) {
				onBoth(t, func(b *bubble) {
					u := b.user()
					u.calls.Next(buckettest.Put, fault)
					l := b.mustAcquire(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
					u.calls.Next(buckettest.Put, fault)
					sleep(2 * ttl)
					b.noError(l.Context().Err())
					u.calls.Next(buckettest.Put, fault)
					b.noError(l.Release(b.withTimeout(cleanUpTimeout)))
					b.noError(b.mustAcquire(b.mutex(Config{TTL: ttl}).TryAcquire(b.Context())).Release(b.Context()))
				})
			})
		}
	}
}

func TestSlowStore(t *testing.T) {
	for _, c := range []struct{ ttl, takes time.Duration }{
		{3 * time.Second, 1200 * time.Millisecond}, {4 * time.Second, 1500 * time.Millisecond},
		{5 * time.Second, 2 * time.Second}, {30 * time.Second, 3 * time.Second}, {time.Minute, 9 * time.Second},
	} {
		t.Run(c.ttl.String()+", "+c.takes.String(), func(t *testing.T) {
			onBoth(t, func(b *bubble) {
				u := b.user()
				u.calls.Next(buckettest.Put, slices.Repeat([]buckettest.Fault{func(ctx context.Context, do func(context.Context) error) error {
					if (realClock{}).Sleep(ctx, c.takes) != nil {
						return fmt.Errorf("%w: %w", bucket.ErrUnclear, context.Cause(ctx))
					}
					return do(ctx)
				}}, 1000)...)
				l := b.mustAcquire(u.mutex(Config{TTL: c.ttl}).Acquire(b.Context()))
				sleep(2 * time.Minute)
				b.noError(context.Cause(l.Context()))
				b.noError(l.Release(b.Context()))
			})
		})
	}
}

// The release is not a loss, but a forced release is.
func TestTakeoverDuringRelease(t *testing.T) {
	for _, force := range []bool{false, true} {
		onBoth(t, func(b *bubble) {
			u, next := b.user(), b.mutex(Config{TTL: ttl})
			l := b.mustAcquire(u.mutex(Config{TTL: ttl}).Acquire(b.Context()))
			w := acquireInBackground(b.Context(), next.Acquire)
			sleep(time.Second)
			if force {
				_, err := b.user().bucket.ForceRelease(b.Context(), "k", l.Token())
				b.noError(err)
			}
			u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
				sleep(2 * ttl) // longer than the TTL, so that the lease is renewed
				return do(context.WithoutCancel(ctx))
			})
			err := l.Release(b.Context())
			if <-w.done; w.err != nil {
				b.Fatal(w.err)
			}
			b.noError(w.lease.Release(b.Context()))
			if force {
				b.wantError(err, ErrLost, b.lock)
			} else {
				b.noError(err)
			}
		})
	}
}
