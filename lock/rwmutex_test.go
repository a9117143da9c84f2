package lock

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket/buckettest"
)

func TestWriterExcludesReaders(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var readers []*Lease
		for range 3 {
			readers = append(readers, b.mustAcquire(b.user().rw(Config{TTL: ttl, Owner: "ann"}).RLock(b.Context())))
		}
		_, err := b.user().rw(Config{TTL: ttl}).TryLock(b.Context())
		b.wantError(err, ErrHeld, "ann", "s3://b/k.readers/")
		b.noError(b.mustAcquire(b.user().rw(Config{TTL: ttl}).TryRLock(b.Context())).Release(b.Context()))

		w := acquireInBackground(b.Context(), b.user().rw(Config{TTL: ttl, Owner: "bob"}).Lock)
		sleep(5 * ttl)
		w.stillWaiting(b)
		for _, try := range []func(context.Context) (*Lease, error){b.user().rw(Config{TTL: ttl}).TryRLock, b.user().rw(Config{TTL: ttl}).TryLock} {
			_, err = try(b.Context())
			b.wantError(err, ErrHeld, "bob")
		}
		for i, r := range readers {
			w.stillWaiting(b)
			b.noError(r.Context().Err())
			b.noError(r.Release(b.Context()))
			if i < len(readers)-1 {
				sleep(ttl)
			}
		}
		began := time.Now()
		writer := w.wait(b)
		b.wantDuration(time.Since(began), 0, 2*time.Second)
		r := acquireInBackground(b.Context(), b.user().rw(Config{TTL: ttl}).RLock)
		sleep(5 * ttl)
		r.stillWaiting(b)
		b.noError(writer.Context().Err())
		b.noError(writer.Release(b.Context()))
		began = time.Now()
		b.noError(r.wait(b).Release(b.Context()))
		b.wantDuration(time.Since(began), 0, 3*time.Second)
	})
}

func TestExpiredReadersAndWritersAreReplaced(t *testing.T) {
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
				b.noError(err)
				m := b.user().rw(Config{TTL: ttl})
				w := acquireInBackground(b.Context(), func(ctx context.Context) (*Lease, error) { return c.acquire(m, ctx) })
				l := w.wait(b)
				b.wantDuration(w.after, ttl+ttl*clockTolerance/100, ttl+ttl*clockTolerance/100+2*time.Second)
				b.wantError(h.renew(b.Context(), ttl), ErrLost)
				b.noError(l.Release(b.Context()))
			})
		})
	}
}

func TestCanceledWriterReleasesLease(t *testing.T) {
	inBubble(t, func(b *bubble) {
		r := b.mustAcquire(b.user().rw(Config{TTL: ttl, Owner: "ann"}).RLock(b.Context()))
		for _, op := range []buckettest.Op{"", buckettest.List} {
			u := b.user()
			if op != "" {
				u.calls.Next(op, buckettest.Pass, noAnswer)
			}
			_, err := u.rw(Config{TTL: ttl, Owner: "bob"}).Lock(b.withTimeout(2 * ttl))
			b.wantError(err, ErrHeld, "ann")
			b.wantError(err, context.DeadlineExceeded)
			b.noError(b.mustAcquire(b.user().rw(Config{TTL: ttl}).TryRLock(b.Context())).Release(b.Context()))
		}
		b.noError(r.Release(b.Context()))
	})
}

func TestCanceledReaderReturnsWriter(t *testing.T) {
	inBubble(t, func(b *bubble) {
		w := b.mustAcquire(b.user().rw(Config{TTL: ttl, Owner: "bob", Reason: "nightly load"}).Lock(b.Context()))
		u := b.user()
		_, err := u.rw(Config{TTL: ttl}).RLock(b.withTimeout(time.Minute))
		b.wantError(err, ErrHeld, "bob", "nightly load")
		b.wantError(err, context.DeadlineExceeded)
		if puts := u.calls.Calls(buckettest.Put); puts > 0 {
			b.Errorf("a reader who waits wrote %d times", puts)
		}
		u.calls.Next(buckettest.Get, buckettest.Pass, noAnswer)
		_, err = u.rw(Config{TTL: ttl}).RLock(b.withTimeout(time.Minute))
		b.wantError(err, ErrHeld, "bob")
		b.noError(w.Release(b.Context()))
	})
}

func TestWriterLosesLeaseWhileWaiting(t *testing.T) {
	inBubble(t, func(b *bubble) {
		r := b.mustAcquire(b.user().rw(Config{TTL: ttl}).RLock(b.Context()))
		w := acquireInBackground(b.Context(), b.user().rw(Config{TTL: ttl}).Lock)
		sleep(ttl)
		u := b.user()
		rec, err := u.bucket.Show(b.Context(), "k")
		b.noError(err)
		_, err = u.bucket.ForceRelease(b.Context(), "k", rec.Token)
		b.noError(err)
		sleep(2 * ttl)
		w.stillWaiting(b)
		b.noError(r.Release(b.Context()))
		l := w.wait(b)
		if l.Token() <= rec.Token+1 {
			b.Errorf("it writes under %d, after %d", l.Token(), rec.Token+1)
		}
		b.noError(l.Release(b.Context()))
	})
}

func TestWriterRetriesRenewalWhileWaiting(t *testing.T) {
	inBubble(t, func(b *bubble) {
		r := b.mustAcquire(b.user().rw(Config{TTL: ttl}).RLock(b.Context()))
		u := b.user()
		m := u.rw(Config{TTL: ttl})
		w := acquireInBackground(b.Context(), m.Lock)
		sleep(time.Second)
		for range 30 {
			u.calls.Next(buckettest.Put, buckettest.Lost)
		}
		sleep(5 * ttl)
		w.stillWaiting(b)
		b.noError(r.Release(b.Context()))
		l := w.wait(b)
		sleep(2 * ttl)
		b.noError(l.Context().Err())
		b.noError(l.Release(b.Context()))
	})
}

func TestSuspendedReaderCannotRenew(t *testing.T) {
	inBubble(t, func(b *bubble) {
		m := b.user().rw(Config{TTL: ttl})
		reader, err := m.readers.acquire(b.Context(), true, m.tryRLock)
		b.noError(err)
		l := b.mustAcquire(b.user().rw(Config{TTL: ttl}).Lock(b.Context()))
		b.wantError(reader.renew(b.Context(), time.Hour), ErrLost)
		b.noError(l.Release(b.Context()))
	})
}

func TestWriterLeaseExpiresDuringListing(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		u.calls.Next(buckettest.List, buckettest.Between(func() { sleep(9 * time.Second) }))
		slow := acquireInBackground(b.Context(), u.rw(Config{TTL: MinTTL}).Lock)
		sleep(time.Second)
		l := b.mustAcquire(b.user().rw(Config{TTL: MinTTL}).Lock(b.Context()))
		sleep(10 * time.Second)
		slow.stillWaiting(b)
		b.noError(l.Context().Err())
		b.noError(l.Release(b.Context()))
		last := slow.wait(b)
		if last.Token() <= l.Token() {
			b.Errorf("token %d after %d", last.Token(), l.Token())
		}
		b.noError(last.Release(b.Context()))
	})
}

func TestWriterRenewsBetweenReads(t *testing.T) {
	inBubble(t, func(b *bubble) {
		before := b.mustAcquire(b.user().rw(Config{TTL: ttl}).Lock(b.Context()))
		b.noError(before.Release(b.Context()))
		var readers []*Lease
		for range 20 {
			readers = append(readers, b.mustAcquire(b.user().rw(Config{TTL: ttl}).RLock(b.Context())))
		}
		for _, r := range readers {
			b.noError(r.Release(b.Context()))
		}
		u := b.user()
		u.calls.Next(buckettest.Get, buckettest.Pass) // of the writer lease
		for range readers {
			u.calls.Next(buckettest.Get, buckettest.Between(func() { sleep(time.Second) }))
		}
		l := b.mustAcquire(u.rw(Config{TTL: ttl}).Lock(b.Context()))
		if n := l.Token() - before.Token(); n != 1 {
			b.Errorf("it had to enter %d times", n)
		}
		b.noError(l.Release(b.Context()))
	})
}
