package lock

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

func TestFairIsInOrder(t *testing.T) {
	c := Config{TTL: ttl, Fair: true}
	for name, contender := range map[string]func(b *bubble) locker{
		"Mutex": func(b *bubble) locker {
			m := b.mutex(c)
			return locker{m.Acquire, m.TryAcquire}
		},
		"RWMutex": func(b *bubble) locker {
			m := b.user().rw(c)
			return locker{m.Lock, m.TryLock}
		},
	} {
		t.Run(name, func(t *testing.T) { inBubble(t, func(b *bubble) { b.inOrder(contender) }) })
	}
}

// locker is one's own lock.
type locker struct {
	acquire, try func(context.Context) (*Lease, error)
}

func (b *bubble) inOrder(contender func(b *bubble) locker) {
	b.Helper()
	l := b.got(contender(b).acquire(b.Context()))
	const waiters = 6
	entered := make(chan int, waiters)
	for i := range waiters {
		m := contender(b)
		go func() {
			defer func() { entered <- i }()
			l, err := m.acquire(b.Context())
			if err == nil {
				sleep(3 * time.Second)
				err = l.Release(b.Context())
			}
			if err != nil {
				b.Error(err)
			}
		}()
		sleep(7 * time.Second) // the tickets must be renewed meanwhile
	}
	_, err := contender(b).try(b.Context())
	b.refused(err, ErrHeld)
	b.done(l.Release(b.Context()))
	_, err = contender(b).try(b.Context()) // nobody overtakes those who wait
	b.refused(err, ErrHeld)
	var order []int
	for range waiters {
		order = append(order, <-entered)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5}, order); diff != "" {
		b.Errorf("order of entry (-want +got):\n%s", diff)
	}
	if keys := b.keys(); !slices.Equal(keys, []string{"k"}) {
		b.Errorf("left behind: %q", keys)
	}
}

// ticket leaves a ticket behind, that nobody renews.
func (b *bubble) ticket(number int) {
	b.Helper()
	q := &queue{Mutex: b.mutex(Config{TTL: ttl}), prefix: "k.queue/"}
	b.done(q.enter(b.Context(), number))
}

func TestATicketLeftBehind(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.ticket(1)
		w := begins(b.Context(), b.mutex(Config{TTL: ttl, Fair: true}).Acquire)
		b.done(w.enters(b).Release(b.Context()))
		b.about(w.after, ttl+ttl*rate/100, ttl+ttl*rate/100+2*time.Second)
		if keys := b.keys(); !slices.Equal(keys, []string{"k"}) {
			b.Errorf("left behind: %q", keys)
		}
	})
}

// TestATicketLeftBehindToOneWhoTries: no single call waits for long enough to know
// that a ticket is nobody's.
func TestATicketLeftBehindToOneWhoTries(t *testing.T) {
	for name, acquire := range map[string]func(*Mutex, *bubble) (*Lease, error){
		"trying":        func(m *Mutex, b *bubble) (*Lease, error) { return m.TryAcquire(b.Context()) },
		"waiting a bit": func(m *Mutex, b *bubble) (*Lease, error) { return m.Acquire(b.within(ttl / 5)) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.ticket(1)
				m, began := b.mutex(Config{TTL: ttl, Fair: true}), time.Now()
				for {
					l, err := acquire(m, b)
					if err == nil {
						b.done(l.Release(b.Context()))
						break
					}
					b.refused(err, ErrHeld)
					if time.Since(began) > 5*ttl {
						b.Fatal("still not to be had")
					}
					sleep(time.Second)
				}
				b.about(time.Since(began), ttl, ttl+ttl*rate/100+2*time.Second)
			})
		})
	}
}

// TestATicketThatIsRenewed keeps its place, however long it takes.
func TestATicketThatIsRenewed(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := Config{TTL: ttl, Fair: true}
		l := b.got(b.mutex(c).Acquire(b.Context()))
		first := begins(b.Context(), b.mutex(c).Acquire)
		sleep(time.Second)
		second := begins(b.Context(), b.mutex(c).Acquire)
		sleep(20 * ttl)
		first.outside(b)
		second.outside(b)
		b.done(l.Release(b.Context()))
		l = first.enters(b)
		sleep(ttl)
		second.outside(b)
		b.done(l.Release(b.Context()))
		b.done(second.enters(b).Release(b.Context()))
	})
}

// TestAFairWaiterThatGivesUp leaves no ticket.
func TestAFairWaiterThatGivesUp(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := Config{TTL: ttl, Fair: true, Owner: "ann"}
		l := b.got(b.mutex(c).Acquire(b.Context()))
		_, err := b.mutex(c).Acquire(b.within(3 * ttl))
		b.refused(err, ErrHeld, "ann")
		b.refused(err, context.DeadlineExceeded)
		if keys := b.keys(); !slices.Equal(keys, []string{"k"}) {
			b.Errorf("left behind: %q", keys)
		}
		b.done(l.Release(b.Context()))
	})
}

// TestATicketThatWasTaken by somebody else in the same moment.
func TestATicketThatWasTaken(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		u.calls.Next(buckettest.Put, buckettest.Between(func() { b.ticket(1) }))
		w := begins(b.Context(), u.mutex(Config{TTL: ttl, Fair: true}).Acquire)
		sleep(time.Second)
		w.outside(b)
		if keys := b.keys(); !slices.Equal(keys, []string{"k.queue/000000000001", "k.queue/000000000002"}) {
			b.Errorf("there is %q", keys)
		}
		b.done(w.enters(b).Release(b.Context()))
	})
}

// TestATicketThatWasRemoved: its waiter was taken for dead, and takes another.
func TestATicketThatWasRemoved(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := Config{TTL: ttl, Fair: true}
		l := b.got(b.mutex(c).Acquire(b.Context()))
		w := begins(b.Context(), b.mutex(c).Acquire)
		sleep(time.Second)
		b.remove("k.queue/000000000001")
		sleep(2 * ttl)
		w.outside(b)
		b.done(l.Release(b.Context()))
		b.done(w.enters(b).Release(b.Context()))
		if keys := b.keys(); !slices.Equal(keys, []string{"k"}) {
			b.Errorf("left behind: %q", keys)
		}
	})
}

// TestATicketThatNobodyMayRemove: who waits behind it is told.
func TestATicketThatNobodyMayRemove(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.ticket(1)
		u := b.user()
		u.calls.Next(buckettest.Delete, buckettest.Answer(bucket.ErrDenied))
		_, err := u.mutex(Config{TTL: ttl, Fair: true}).Acquire(b.within(time.Hour))
		b.refused(err, bucket.ErrDenied, "removing the ticket s3://b/k.queue/000000000001")
	})
}
