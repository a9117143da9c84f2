package lock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

func TestAcquireReturnsHolderWhenContextEnds(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.mustAcquire(b.mutex(Config{Owner: "ann", Reason: "nightly load"}).Acquire(b.Context()))
		began := time.Now()
		_, err := b.mutex(Config{}).Acquire(b.withTimeout(100 * time.Second))
		b.wantError(err, ErrHeld, b.lock, "ann", "nightly load", "2000-01-01T00:00:00Z")
		b.wantError(err, context.DeadlineExceeded)
		b.wantDuration(time.Since(began), 100*time.Second, 100*time.Second)
		if held, ok := errors.AsType[*HeldError](err); !ok || held.Record.Token != l.Token() || held.Lock != b.lock {
			b.Errorf("%+v: want who holds it", err)
		}
		ctx, cancel := context.WithCancelCause(b.Context())
		w, why := acquireInBackground(ctx, b.mutex(Config{}).Acquire), errors.New("enough")
		sleep(time.Minute)
		cancel(why)
		<-w.done
		b.wantError(w.err, why)
		b.wantError(w.err, ErrHeld, "ann")
		b.noError(l.Release(b.Context()))
	})
}

func TestAcquireReturnsHolderWhenReadTimesOut(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.mustAcquire(b.mutex(Config{Owner: "ann"}).Acquire(b.Context()))
		u := b.user()
		u.calls.Next(buckettest.Get, buckettest.Pass, noAnswer)
		_, err := u.mutex(Config{}).Acquire(b.withTimeout(5 * time.Second))
		b.wantError(err, ErrHeld, "ann")
		b.wantError(err, context.DeadlineExceeded)
		b.noError(l.Release(b.Context()))
	})
}

func TestTryAcquire(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{Owner: "ann"})
		l := b.mustAcquire(m.TryAcquire(b.Context()))
		began := time.Now()
		_, err := b.mutex(Config{}).TryAcquire(b.Context())
		b.wantError(err, ErrHeld, "ann")
		_, err = m.TryAcquire(b.Context())
		b.wantError(err, ErrHeld)
		b.wantDuration(time.Since(began), 0, 0)
		b.noError(l.Release(b.Context()))
		b.noError(b.mustAcquire(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}

// The lease may have been renewed between two distant reads.
func TestTakeoverRequiresWatchingLease(t *testing.T) {
	onBoth(t, func(b *bubble) {
		b.acquireWithoutRenewal(b.mutex(Config{TTL: ttl}))
		sleep(100 * ttl)
		m := b.mutex(Config{TTL: ttl})
		_, err := m.TryAcquire(b.Context())
		b.wantError(err, ErrHeld)
		sleep(ttl)
		_, err = m.TryAcquire(b.Context())
		b.wantError(err, ErrHeld)
		sleep(ttl * clockTolerance / 100)
		b.noError(b.mustAcquire(m.TryAcquire(b.Context())).Release(b.Context()))
	})
}

func TestTakeoverWaitsForHolderTTL(t *testing.T) {
	for _, c := range []struct{ holder, waiter time.Duration }{{time.Minute, time.Second}, {time.Second, time.Minute}} {
		onBoth(t, func(b *bubble) {
			b.acquireWithoutRenewal(b.mutex(Config{TTL: c.holder}))
			w := acquireInBackground(b.Context(), b.mutex(Config{TTL: c.waiter}).Acquire)
			b.noError(w.wait(b).Release(b.Context()))
			b.wantDuration(w.after, c.holder+c.holder*clockTolerance/100, c.holder+c.holder*clockTolerance/100+time.Second)
		})
	}
}

func TestWaiterAcquiresSoonAfterRelease(t *testing.T) {
	for range 20 {
		onBoth(t, func(b *bubble) {
			l := b.mustAcquire(b.mutex(Config{}).Acquire(b.Context()))
			w := acquireInBackground(b.Context(), b.mutex(Config{}).Acquire)
			sleep(time.Minute)
			w.stillWaiting(b)
			b.noError(l.Release(b.Context()))
			b.noError(w.wait(b).Release(b.Context()))
			b.wantDuration(w.after, time.Minute, time.Minute+2*time.Second)
		})
	}
}

func TestInvalidConfigs(t *testing.T) {
	b := Proved(nil, "b")
	long := strings.Repeat("x", MaxText+1)
	for _, c := range []struct {
		name   string
		config Config
		says   string
	}{
		{"a TTL that is too short", Config{TTL: time.Second - 1}, "want 1s to 24h0m0s"},
		{"a TTL that is too long", Config{TTL: 24*time.Hour + 1}, "want 1s to 24h0m0s"},
		{"a negative TTL", Config{TTL: -time.Hour}, "TTL -1h0m0s"},
		{"a long owner", Config{Owner: long}, "at most 1024 bytes"},
		{"a long reason", Config{Reason: long}, "at most 1024 bytes"},
		{"a long id", Config{ID: long}, "at most 128 bytes"},
		{"no text", Config{Reason: "\xff"}, "of UTF-8"},
	} {
		_, mutex := b.Mutex("k", c.config)
		_, semaphore := b.Semaphore("k", 1, c.config)
		_, rw := b.RWMutex("k", c.config)
		for _, err := range []error{mutex, semaphore, rw} {
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), onObject) {
				t.Errorf("%s: %v: want %q", c.name, err, c.says)
			}
		}
	}
	for _, key := range []string{"", "/k", "k/", "a//k", "./k", "a/../k", "k/."} {
		_, mutex := b.Mutex(key, Config{})
		_, semaphore := b.Semaphore(key, 1, Config{})
		_, rw := b.RWMutex(key, Config{})
		for _, err := range []error{mutex, semaphore, rw} {
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "choose another key") {
				t.Errorf("the key %q: %v", key, err)
			}
		}
	}
	for _, n := range []int{-1, 0, MaxSlots + 1} {
		if _, err := b.Semaphore("k", n, Config{}); !errors.Is(err, ErrConfig) {
			t.Errorf("a semaphore of %d: %v", n, err)
		}
	}
}

func TestLongestNames(t *testing.T) {
	onBoth(t, func(b *bubble) {
		m := b.mutex(Config{TTL: ttl, ID: strings.Repeat("<", MaxID), Owner: strings.Repeat("<", MaxText), Reason: strings.Repeat("\x00", MaxText)})
		l := b.mustAcquire(m.Acquire(b.Context()))
		sleep(2 * maxBefore * ttl / renewAfter)
		b.noError(l.Release(b.Context()))
		l = b.mustAcquire(b.mutex(Config{}).Acquire(b.Context()))
		b.noError(l.Release(b.Context()))
	})
}

func TestOpen(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		opened, err := Open(b.Context(), u.calls, "b", "locks/")
		b.noError(err)
		total := 0
		for _, op := range []buckettest.Op{buckettest.Head, buckettest.List, buckettest.Get, buckettest.Put, buckettest.Delete} {
			total += u.calls.Calls(op)
		}
		if keys := b.keys(); total != 7 || len(keys) > 0 {
			b.Errorf("%d requests, want 7; left behind: %q", total, keys)
		}
		m, err := opened.Mutex("k", Config{})
		b.noError(err)
		b.noError(b.mustAcquire(m.Acquire(b.Context())).Release(b.Context()))
		_, err = Open(b.Context(), u.calls, "nowhere", "")
		b.wantError(err, bucket.ErrNoBucket, "supports locks")
	})
}
