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

// away lets a user's store be away for a time.
func (u *user) away(d time.Duration) {
	back := time.Now().Add(d)
	fault := func(ctx context.Context, do func(context.Context) error) error {
		if time.Now().Before(back) {
			return fmt.Errorf("%w: away", bucket.ErrUnavailable)
		}
		return do(ctx)
	}
	for _, op := range []buckettest.Op{buckettest.Get, buckettest.Put, buckettest.List} {
		u.calls.Next(op, slices.Repeat([]buckettest.Fault{fault}, 10_000)...)
	}
}

// TestATicketAfterAnOutage: nobody waits for a ticket that is his own, and nobody
// loses the place that the others have left him.
func TestATicketAfterAnOutage(t *testing.T) {
	for range 20 { // who looks first is random
		inBubble(t, (*bubble).outageOfWaiters)
	}
}

func (b *bubble) outageOfWaiters() {
	c := Config{TTL: ttl, Fair: true}
	l := b.got(b.mutex(c).Acquire(b.Context()))
	u := b.user()
	entered := make(chan string, 2)
	for _, who := range []string{"first", "second"} {
		go func() {
			defer func() { entered <- who }()
			l, err := u.mutex(c).Acquire(b.Context())
			if err == nil {
				err = l.Release(b.Context())
			}
			if err != nil {
				b.Error(err)
			}
		}()
		sleep(time.Second)
	}
	u.away(ttl)
	sleep(ttl + 3*time.Second)
	if keys := b.keys(); !slices.Equal(keys, []string{"k", "k.queue/000000000001", "k.queue/000000000002"}) {
		b.Errorf("after the outage there are %q", keys)
	}
	b.done(l.Release(b.Context()))
	released := time.Now()
	if first, second := <-entered, <-entered; first != "first" {
		b.Errorf("%s entered before %s", first, second)
	}
	b.about(time.Since(released), 0, 5*time.Second)
}

// TestATicketLostInAnOutage: one whose ticket was removed gets another.
func TestATicketLostInAnOutage(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := Config{TTL: ttl, Fair: true}
		l := b.got(b.mutex(c).Acquire(b.Context()))
		u := b.user()
		w := begins(b.Context(), u.mutex(c).Acquire)
		sleep(time.Second)
		u.away(ttl)
		sleep(ttl / 2)
		b.remove("k.queue/000000000001")
		b.ticket(1) // the next one's
		there := b.content("k.queue/000000000001")
		sleep(ttl/2 + 3*time.Second)
		if b.content("k.queue/000000000001") != there || b.content("k.queue/000000000002") == "" {
			b.Errorf("after the outage there are %q", b.keys())
		}
		b.done(l.Release(b.Context()))
		b.done(w.enters(b).Release(b.Context()))
	})
}

// TestARemovalThatIsNotAnswered removes one's ticket again.
func TestARemovalThatIsNotAnswered(t *testing.T) {
	for name, fault := range map[string]buckettest.Fault{
		"it was lost": buckettest.Lost, "busy": buckettest.Answer(bucket.ErrUnavailable),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				u := b.user()
				u.calls.Next(buckettest.Delete, fault, fault)
				l := b.got(u.mutex(Config{TTL: ttl, Fair: true}).Acquire(b.Context()))
				if keys := b.keys(); !slices.Equal(keys, []string{"k"}) {
					b.Errorf("left behind: %q", keys)
				}
				b.done(l.Release(b.Context()))
			})
		})
	}
}

// TestATicketThatCannotBeRemoved: one enters nevertheless, in time, and comes back
// to the place that one has.
func TestATicketThatCannotBeRemoved(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		m := u.mutex(Config{TTL: ttl, Fair: true})
		u.calls.Next(buckettest.Delete, slices.Repeat([]buckettest.Fault{buckettest.Answer(bucket.ErrUnavailable)}, 1000)...)
		for range 3 {
			began := time.Now()
			l := b.got(m.Acquire(b.Context()))
			b.about(time.Since(began), 0, ttl/3)
			b.done(l.Context().Err())
			sleep(ttl / 2)
			b.done(l.Context().Err())
			b.done(l.Release(b.Context()))
		}
		if keys := b.keys(); !slices.Equal(keys, []string{"k", "k.queue/000000000001"}) {
			b.Errorf("there are %q", keys)
		}
	})
}

// queued is somebody with the first ticket.
func (b *bubble) queued() (*user, *queue) {
	b.Helper()
	u := b.user()
	q := &queue{Mutex: u.mutex(Config{TTL: ttl}), prefix: "k.queue/"}
	b.done(q.enter(b.Context(), 1))
	return u, q
}

// renewsInVain renews the ticket once, and gives up without knowing what became of
// that.
func (u *user) renewsInVain(q *queue, fault buckettest.Fault) {
	u.Helper()
	ctx, leave := context.WithCancel(u.Context())
	u.calls.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
		defer leave()
		return fault(ctx, do)
	})
	u.refused(q.ticket.renew(ctx, ttl), context.Canceled)
}

// TestALookThatFailsBeforeARemoval: a renewal of unknown fate must be looked for.
func TestALookThatFailsBeforeARemoval(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u, q := b.queued()
		u.renewsInVain(q, buckettest.Landed)
		u.calls.Next(buckettest.Get, buckettest.Answer(bucket.ErrUnavailable))
		q.leave(b.Context(), abandonTime)
		if keys := b.keys(); len(keys) > 0 || q.left != nil {
			b.Errorf("left behind: %q", keys)
		}
	})
}

// TestALateRenewalOfATicket lands when one looks for it after an outage.
func TestALateRenewalOfATicket(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u, q := b.queued()
		var land func() error
		u.renewsInVain(q, buckettest.Late(&land))
		u.calls.Next(buckettest.Put, buckettest.Between(func() { b.done(land()) }))
		b.done(q.find(b.Context()))
		if q.ticket == nil {
			b.Fatal("the place was given away")
		}
		b.done(q.ticket.renew(b.Context(), ttl))
	})
}

// TestATicketReleasedByForce is no place any more.
func TestATicketReleasedByForce(t *testing.T) {
	inBubble(t, func(b *bubble) {
		_, q := b.queued()
		_, err := b.user().bucket.ForceRelease(b.Context(), q.key(1), q.ticket.at.rec.Token)
		b.done(err)
		b.refused(q.ticket.renew(b.Context(), ttl), ErrLost)
		b.done(q.find(b.Context()))
		if q.ticket != nil {
			b.Error("it was taken back")
		}
	})
}
