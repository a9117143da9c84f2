package lock

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket/buckettest"
)

func TestReadersTogetherAndAWriterAlone(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var readers []*Lease
		for range 3 {
			readers = append(readers, b.got(b.user().rw(Config{TTL: ttl, Owner: "ann"}).RLock(b.Context())))
		}
		_, err := b.user().rw(Config{TTL: ttl}).TryLock(b.Context())
		b.refused(err, ErrHeld, "ann", "s3://b/k.readers/")
		b.done(b.got(b.user().rw(Config{TTL: ttl}).TryRLock(b.Context())).Release(b.Context()))

		w := begins(b.Context(), b.user().rw(Config{TTL: ttl, Owner: "bob"}).Lock)
		sleep(5 * ttl)
		w.outside(b)
		// A writer that waits keeps new readers out, and other writers.
		for _, try := range []func(context.Context) (*Lease, error){b.user().rw(Config{TTL: ttl}).TryRLock, b.user().rw(Config{TTL: ttl}).TryLock} {
			_, err = try(b.Context())
			b.refused(err, ErrHeld, "bob")
		}
		for i, r := range readers {
			w.outside(b)
			b.done(r.Context().Err())
			b.done(r.Release(b.Context()))
			if i < len(readers)-1 {
				sleep(ttl)
			}
		}
		began := time.Now()
		writer := w.enters(b)
		b.about(time.Since(began), 0, 2*time.Second)
		r := begins(b.Context(), b.user().rw(Config{TTL: ttl}).RLock)
		sleep(5 * ttl)
		r.outside(b)
		b.done(writer.Context().Err())
		b.done(writer.Release(b.Context()))
		began = time.Now()
		b.done(r.enters(b).Release(b.Context()))
		b.about(time.Since(began), 0, 3*time.Second)
	})
}

// TestReadersAndWritersLeftBehind do not block for ever.
func TestReadersAndWritersLeftBehind(t *testing.T) {
	for _, c := range []struct {
		name    string
		left    func(*RWMutex, context.Context) (*heldLease, error)
		acquire func(*RWMutex, context.Context) (*Lease, error)
	}{
		{"a writer after a reader", func(m *RWMutex, ctx context.Context) (*heldLease, error) {
			return m.readers.acquire(ctx, true, m.tryRLock)
		}, (*RWMutex).Lock},
		{"a reader after a writer", func(m *RWMutex, ctx context.Context) (*heldLease, error) { return m.lock(ctx, true) }, (*RWMutex).RLock},
		{"a writer after a writer", func(m *RWMutex, ctx context.Context) (*heldLease, error) { return m.lock(ctx, true) }, (*RWMutex).Lock},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				h, err := c.left(b.user().rw(Config{TTL: ttl}), b.Context())
				b.done(err)
				m := b.user().rw(Config{TTL: ttl})
				w := begins(b.Context(), func(ctx context.Context) (*Lease, error) { return c.acquire(m, ctx) })
				l := w.enters(b)
				b.about(w.after, ttl+ttl*rate/100, ttl+ttl*rate/100+2*time.Second)
				// Its lease cannot be renewed any more.
				b.refused(h.renew(b.Context(), ttl), ErrLost)
				b.done(l.Release(b.Context()))
			})
		})
	}
}

// TestAWriterThatGivesUp opens the gate again, and is told who reads.
func TestAWriterThatGivesUp(t *testing.T) {
	inBubble(t, func(b *bubble) {
		r := b.got(b.user().rw(Config{TTL: ttl, Owner: "ann"}).RLock(b.Context()))
		for _, op := range []buckettest.Op{"", buckettest.List} {
			u := b.user()
			if op != "" {
				u.calls.Next(op, buckettest.Pass, silent)
			}
			_, err := u.rw(Config{TTL: ttl, Owner: "bob"}).Lock(b.within(2 * ttl))
			b.refused(err, ErrHeld, "ann")
			b.refused(err, context.DeadlineExceeded)
			b.done(b.got(b.user().rw(Config{TTL: ttl}).TryRLock(b.Context())).Release(b.Context()))
		}
		b.done(r.Release(b.Context()))
	})
}

// TestAReaderThatGivesUp is told who writes.
func TestAReaderThatGivesUp(t *testing.T) {
	inBubble(t, func(b *bubble) {
		w := b.got(b.user().rw(Config{TTL: ttl, Owner: "bob", Reason: "nightly load"}).Lock(b.Context()))
		u := b.user()
		_, err := u.rw(Config{TTL: ttl}).RLock(b.within(time.Minute))
		b.refused(err, ErrHeld, "bob", "nightly load")
		b.refused(err, context.DeadlineExceeded)
		if puts := u.calls.Calls(buckettest.Put); puts > 0 {
			b.Errorf("a reader who waits wrote %d times", puts)
		}
		u.calls.Next(buckettest.Get, buckettest.Pass, silent)
		_, err = u.rw(Config{TTL: ttl}).RLock(b.within(time.Minute))
		b.refused(err, ErrHeld, "bob")
		b.done(w.Release(b.Context()))
	})
}

// TestAWriterLosesItsGate while it waits for a reader, and begins again.
func TestAWriterLosesItsGate(t *testing.T) {
	inBubble(t, func(b *bubble) {
		r := b.got(b.user().rw(Config{TTL: ttl}).RLock(b.Context()))
		w := begins(b.Context(), b.user().rw(Config{TTL: ttl}).Lock)
		sleep(ttl)
		u := b.user()
		rec, err := u.bucket.Show(b.Context(), "k")
		b.done(err)
		_, err = u.bucket.ForceRelease(b.Context(), "k", rec.Token)
		b.done(err)
		sleep(2 * ttl)
		w.outside(b)
		b.done(r.Release(b.Context()))
		l := w.enters(b)
		if l.Token() <= rec.Token+1 {
			b.Errorf("it writes under %d, after %d", l.Token(), rec.Token+1)
		}
		b.done(l.Release(b.Context()))
	})
}

// TestAWriterThatCannotRenewItsGate while it waits for a reader tries until it can.
func TestAWriterThatCannotRenewItsGate(t *testing.T) {
	inBubble(t, func(b *bubble) {
		r := b.got(b.user().rw(Config{TTL: ttl}).RLock(b.Context()))
		u := b.user()
		m := u.rw(Config{TTL: ttl})
		w := begins(b.Context(), m.Lock)
		sleep(time.Second)
		for range 30 {
			u.calls.Next(buckettest.Put, buckettest.Lost)
		}
		sleep(5 * ttl)
		w.outside(b)
		b.done(r.Release(b.Context()))
		l := w.enters(b)
		sleep(2 * ttl)
		b.done(l.Context().Err())
		b.done(l.Release(b.Context()))
	})
}

// TestAReaderThatSleptCannotRenew lets a reader stand still while a writer enters,
// and then renew its lease.
func TestAReaderThatSleptCannotRenew(t *testing.T) {
	inBubble(t, func(b *bubble) {
		m := b.user().rw(Config{TTL: ttl})
		reader, err := m.readers.acquire(b.Context(), true, m.tryRLock)
		b.done(err)
		l := b.got(b.user().rw(Config{TTL: ttl}).Lock(b.Context()))
		b.refused(reader.renew(b.Context(), time.Hour), ErrLost)
		b.done(l.Release(b.Context()))
	})
}

// TestAWriterWhoseGateLapses while it lists the readers: another has entered by then.
func TestAWriterWhoseGateLapses(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		u.calls.Next(buckettest.List, buckettest.Between(func() { sleep(9 * time.Second) }))
		slow := begins(b.Context(), u.rw(Config{TTL: MinTTL}).Lock)
		sleep(time.Second)
		l := b.got(b.user().rw(Config{TTL: MinTTL}).Lock(b.Context()))
		sleep(10 * time.Second)
		slow.outside(b)
		b.done(l.Context().Err())
		b.done(l.Release(b.Context()))
		last := slow.enters(b)
		if last.Token() <= l.Token() {
			b.Errorf("token %d after %d", last.Token(), l.Token())
		}
		b.done(last.Release(b.Context()))
	})
}

// TestAWriterRenewsItsGate between the readers that it looks at, who are many.
func TestAWriterRenewsItsGate(t *testing.T) {
	inBubble(t, func(b *bubble) {
		before := b.got(b.user().rw(Config{TTL: ttl}).Lock(b.Context()))
		b.done(before.Release(b.Context()))
		var readers []*Lease
		for range 20 {
			readers = append(readers, b.got(b.user().rw(Config{TTL: ttl}).RLock(b.Context())))
		}
		for _, r := range readers {
			b.done(r.Release(b.Context()))
		}
		u := b.user()
		u.calls.Next(buckettest.Get, buckettest.Pass) // of the gate
		for range readers {
			u.calls.Next(buckettest.Get, buckettest.Between(func() { sleep(time.Second) }))
		}
		l := b.got(u.rw(Config{TTL: ttl}).Lock(b.Context()))
		if n := l.Token() - before.Token(); n != 1 {
			b.Errorf("it had to enter %d times", n)
		}
		b.done(l.Release(b.Context()))
	})
}
