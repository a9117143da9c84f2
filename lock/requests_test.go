package lock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket/buckettest"
)

// What each operation costs. The store bills by request.

func TestRequestsOfAMutex(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{})
		l := b.got(m.Acquire(b.Context()))
		u.takes("1 Get, 1 Put") // nobody has ever held it
		b.done(l.Release(b.Context()))
		u.takes("1 Put")
		l = b.got(m.Acquire(b.Context()))
		u.takes("1 Put") // the same Mutex has held it last
		sleep(30*time.Second/renewAfter + time.Millisecond)
		u.takes("1 Put") // one renewal
		sleep(10 * 30 * time.Second / renewAfter)
		u.takes("10 Put")
		b.done(l.Release(b.Context()))
		u.takes("1 Put")

		other := b.user()
		l = b.got(other.mutex(Config{}).Acquire(b.Context()))
		other.takes("1 Get, 1 Put") // it is free
		_, err := other.bucket.ForceRelease(b.Context(), "k", l.Token())
		b.done(err)
		other.takes("1 Get, 1 Put")
		_, err = other.bucket.Show(b.Context(), "k")
		b.done(err)
		other.takes("1 Get")
		b.refused(l.Release(b.Context()), ErrLost)
		other.takes("1 Get, 1 Put") // refused, and looked at

		l = b.got(m.Acquire(b.Context()))
		u.takes("1 Get, 2 Put") // what it held last is not there any more
		b.done(l.Release(b.Context()))
	})
}

func TestRequestsOfOneWhoWaits(t *testing.T) {
	onBoth(t, func(b *bubble) {
		b.stopped(b.mutex(Config{TTL: 10 * time.Second}))
		u := b.user()
		w := begins(b.Context(), u.mutex(Config{TTL: 10 * time.Second}).Acquire)
		sleep(10 * time.Second)
		w.outside(b)
		if puts := u.calls.Calls(buckettest.Put); puts > 0 {
			b.Errorf("it wrote %d times", puts)
		}
		gets := u.calls.Calls(buckettest.Get)
		if gets < 5 || gets > 101 { // a pause is 100 ms to 2 s
			b.Errorf("%d looks in 10 s", gets)
		}
		l := w.enters(b)
		if puts := u.calls.Calls(buckettest.Put); puts != 1 {
			b.Errorf("to take it over it wrote %d times", puts)
		}
		b.done(l.Release(b.Context()))
	})
}

func TestRequestsOfOneWhoWaitsLong(t *testing.T) {
	onBoth(t, func(b *bubble) {
		l := b.got(b.mutex(Config{}).Acquire(b.Context()))
		u := b.user()
		w := begins(b.within(time.Hour), u.mutex(Config{}).Acquire)
		<-w.entered
		b.refused(w.err, ErrHeld)
		if gets := u.calls.Calls(buckettest.Get); gets < 1800 || gets > 6000 {
			b.Errorf("%d looks in an hour", gets)
		}
		u.before[buckettest.Get] = u.calls.Calls(buckettest.Get)
		u.takes("")
		b.done(l.Release(b.Context()))
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
			b.done(err)
			u.takes("1 Get, 1 Put")
		}
		_, err := u.bucket.Update(b.Context(), "k", unchanged, UpdateConfig{})
		b.done(err)
		u.takes("1 Get")
	})
}

func unchanged(_ context.Context, c Content) (Content, error) { return c, nil }

func TestRequestsOfASemaphore(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		s := u.semaphore(3, Config{})
		l := b.got(s.Acquire(b.Context()))
		u.takes("1 List, 1 Put") // nobody has ever held it
		b.done(l.Release(b.Context()))
		u.takes("1 Put")
		l = b.got(s.Acquire(b.Context()))
		u.takes("1 List, 1 Get, 1 Put")
		second := b.got(s.Acquire(b.Context()))
		u.takes("1 List, 1 Put") // what it has written itself it need not read
		b.done(second.Release(b.Context()))
		b.done(l.Release(b.Context()))
		u.takes("2 Put")

		other := b.user()
		l = b.got(other.semaphore(3, Config{}).Acquire(b.Context()))
		other.takes("1 List, 2 Get, 1 Put") // a GET for each slot that it has not seen
		b.done(l.Release(b.Context()))
	})
}

func TestRequestsOfAnRWMutex(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		m := u.rw(Config{})
		r := b.got(m.RLock(b.Context()))
		u.takes("1 List, 2 Get, 1 Put") // nobody has ever held it
		b.done(r.Release(b.Context()))
		u.takes("1 Put")
		r = b.got(m.RLock(b.Context()))
		u.takes("1 List, 3 Get, 1 Put")
		b.done(r.Release(b.Context()))
		u.takes("1 Put")

		w := b.got(m.Lock(b.Context()))
		u.takes("1 List, 2 Get, 1 Put")
		b.done(w.Release(b.Context()))
		u.takes("1 Put")
		w = b.got(m.Lock(b.Context()))
		u.takes("1 List, 1 Put") // the same RWMutex has held it last, and has seen the readers
		b.done(w.Release(b.Context()))

		other := b.user()
		w = b.got(other.rw(Config{}).Lock(b.Context()))
		other.takes("1 List, 2 Get, 1 Put")
		b.done(w.Release(b.Context()))
	})
}

func TestRequestsOfAList(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		for i := range 3 {
			m, err := u.bucket.Mutex(fmt.Sprint("l/", i), Config{})
			b.done(err)
			b.done(b.got(m.Acquire(b.Context())).Release(b.Context()))
		}
		u.takes("3 Get, 6 Put")
		for _, err := range u.bucket.List(b.Context(), "l/") {
			b.done(err)
		}
		u.takes("1 List, 3 Get")
	})
}
