package lock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket/buckettest"
)

// Stores bill by request.

func TestRequestsOfAMutex(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{})
		l := b.mustAcquire(m.Acquire(b.Context()))
		u.wantRequests("1 Get, 1 Put") // the lock was never held
		b.noError(l.Release(b.Context()))
		u.wantRequests("1 Put")
		l = b.mustAcquire(m.Acquire(b.Context()))
		u.wantRequests("1 Put") // the same Mutex held it last
		sleep(30*time.Second/renewAfter + time.Millisecond)
		u.wantRequests("1 Put")
		sleep(10 * 30 * time.Second / renewAfter)
		u.wantRequests("10 Put")
		b.noError(l.Release(b.Context()))
		u.wantRequests("1 Put")

		other := b.user()
		l = b.mustAcquire(other.mutex(Config{}).Acquire(b.Context()))
		other.wantRequests("1 Get, 1 Put") // the lock is free
		_, err := other.bucket.ForceRelease(b.Context(), "k", l.Token())
		b.noError(err)
		other.wantRequests("1 Get, 1 Put")
		_, err = other.bucket.Show(b.Context(), "k")
		b.noError(err)
		other.wantRequests("1 Get")
		b.wantError(l.Release(b.Context()), ErrLost)
		other.wantRequests("1 Get, 1 Put") // the store refuses the write, and the process reads again

		l = b.mustAcquire(m.Acquire(b.Context()))
		u.wantRequests("1 Get, 2 Put") // the cached version is outdated
		b.noError(l.Release(b.Context()))
	})
}

func TestRequestsOfAWaiter(t *testing.T) {
	onBoth(t, func(b *bubble) {
		b.acquireWithoutRenewal(b.mutex(Config{TTL: 10 * time.Second}))
		u := b.user()
		w := acquireInBackground(b.Context(), u.mutex(Config{TTL: 10 * time.Second}).Acquire)
		sleep(10 * time.Second)
		w.stillWaiting(b)
		if puts := u.calls.Calls(buckettest.Put); puts > 0 {
			b.Errorf("the waiting process sent %d writes", puts)
		}
		gets := u.calls.Calls(buckettest.Get)
		if gets < 5 || gets > 101 { // a pause is 100 ms to 2 s
			b.Errorf("%d reads in 10 s", gets)
		}
		l := w.wait(b)
		if puts := u.calls.Calls(buckettest.Put); puts != 1 {
			b.Errorf("the takeover sent %d writes", puts)
		}
		b.noError(l.Release(b.Context()))
	})
}

func TestRequestsOfALongWait(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.mustAcquire(b.mutex(Config{}).Acquire(b.Context()))
		u := b.user()
		w := acquireInBackground(b.withTimeout(time.Hour), u.mutex(Config{}).Acquire)
		<-w.done
		b.wantError(w.err, ErrHeld)
		if gets := u.calls.Calls(buckettest.Get); gets < 1800 || gets > 6000 {
			b.Errorf("%d reads in an hour", gets)
		}
		u.before[buckettest.Get] = u.calls.Calls(buckettest.Get)
		u.wantRequests("")
		b.noError(l.Release(b.Context()))
	})
}

func TestRequestsOfAnUpdate(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		add := func(_ context.Context, c Content) (Content, error) {
			c.Body = append(c.Body, '.')
			return c, nil
		}
		for range 2 {
			_, err := u.bucket.Update(b.Context(), "k", add, UpdateConfig{Create: true})
			b.noError(err)
			u.wantRequests("1 Get, 1 Put")
		}
		_, err := u.bucket.Update(b.Context(), "k", unchanged, UpdateConfig{})
		b.noError(err)
		u.wantRequests("1 Get")
	})
}

func unchanged(_ context.Context, c Content) (Content, error) { return c, nil }

func TestRequestsOfASemaphore(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		s := u.semaphore(3, Config{})
		l := b.mustAcquire(s.Acquire(b.Context()))
		u.wantRequests("1 List, 1 Put") // the semaphore was never held
		b.noError(l.Release(b.Context()))
		u.wantRequests("1 Put")
		l = b.mustAcquire(s.Acquire(b.Context()))
		u.wantRequests("1 List, 1 Get, 1 Put")
		second := b.mustAcquire(s.Acquire(b.Context()))
		u.wantRequests("1 List, 1 Put") // its own writes need no read
		b.noError(second.Release(b.Context()))
		b.noError(l.Release(b.Context()))
		u.wantRequests("2 Put")

		other := b.user()
		l = b.mustAcquire(other.semaphore(3, Config{}).Acquire(b.Context()))
		other.wantRequests("1 List, 2 Get, 1 Put") // a GET for each slot that it has not read
		b.noError(l.Release(b.Context()))
	})
}

func TestRequestsOfAnRWMutex(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		m := u.rw(Config{})
		r := b.mustAcquire(m.RLock(b.Context()))
		u.wantRequests("1 List, 2 Get, 1 Put") // the lock was never held
		b.noError(r.Release(b.Context()))
		u.wantRequests("1 Put")
		r = b.mustAcquire(m.RLock(b.Context()))
		u.wantRequests("1 List, 3 Get, 1 Put")
		b.noError(r.Release(b.Context()))
		u.wantRequests("1 Put")

		w := b.mustAcquire(m.Lock(b.Context()))
		u.wantRequests("1 List, 2 Get, 1 Put")
		b.noError(w.Release(b.Context()))
		u.wantRequests("1 Put")
		w = b.mustAcquire(m.Lock(b.Context()))
		u.wantRequests("1 List, 1 Put") // the same RWMutex held it last, and has read the readers
		b.noError(w.Release(b.Context()))

		other := b.user()
		w = b.mustAcquire(other.rw(Config{}).Lock(b.Context()))
		other.wantRequests("1 List, 2 Get, 1 Put")
		b.noError(w.Release(b.Context()))
	})
}

func TestRequestsOfAList(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		for i := range 3 {
			m, err := u.bucket.Mutex(fmt.Sprint("l/", i), Config{})
			b.noError(err)
			b.noError(b.mustAcquire(m.Acquire(b.Context())).Release(b.Context()))
		}
		u.wantRequests("3 Get, 6 Put")
		for _, err := range u.bucket.List(b.Context(), "l/") {
			b.noError(err)
		}
		u.wantRequests("1 List, 3 Get")
	})
}
