package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

// queue is the waiters of one fair contender's lock: a ticket each, an object
// whose key is a number. The lowest ticket may take the lock. A ticket is a lease
// that its waiter renews; one that has not changed for its TTL is removed. The
// queue decides who goes first, and nothing else: the lock itself excludes,
// whatever becomes of tickets.
type queue struct {
	*Mutex
	prefix string
	ticket *ticket // ours, or nil
}

// ticket is a place in the queue.
type ticket struct {
	*hold
	number int
}

// ticketSeen is since when a ticket has not changed.
type ticketSeen struct {
	etag  string
	since time.Time
	ttl   time.Duration // of its waiter, or of its watcher as long as that is not known
}

// acquireFair waits for its turn, and then for the lock.
func (m *Mutex) acquireFair(ctx context.Context, wait bool) (*hold, error) {
	q := &queue{Mutex: m, prefix: m.ref.Key + ".queue/", ticket: m.left}
	within := abandonTime
	defer func() { q.leave(ctx, within) }()
	pauses := m.polls()
	var busy *HeldError
	for {
		var first bool
		err := m.persist(ctx, func() (err error) {
			first, err = q.first(ctx, wait)
			return err
		})
		if err != nil {
			return nil, busy.gaveUp(ctx, err)
		}
		left := m.holder.ttl() / 4 // the ticket must be renewed
		if first {
			now, seen, err := m.read(ctx)
			if err != nil {
				return nil, busy.gaveUp(ctx, err)
			}
			h, claimable, err := m.take(ctx, &now, &seen)
			switch {
			case h != nil:
				within = min(within, h.ttl()/4) // until it must be renewed
				return h, nil
			case err != nil:
				return nil, busy.gaveUp(ctx, err)
			}
			left, busy = min(left, claimable), &HeldError{Lock: m.String(), Record: now.rec}
		} else if busy == nil {
			busy = &HeldError{Lock: m.String()}
		}
		if !wait {
			return nil, busy
		}
		if err := m.clock.Sleep(ctx, min(pauses.next(), left)); err != nil {
			return nil, fmt.Errorf("%w: %w", busy, err)
		}
	}
}

// first reports that it is this contender's turn. One who waits gets a ticket,
// and keeps it.
func (q *queue) first(ctx context.Context, wait bool) (bool, error) {
	if q.ticket != nil {
		err := q.ticket.tend(ctx)
		if errors.Is(err, ErrLost) {
			if err = q.find(ctx); err != nil {
				return false, err
			}
		}
		if err != nil && ctx.Err() != nil {
			return false, err
		}
	}
	for pauses := q.retries(); ; {
		before, last, err := q.look(ctx)
		if err != nil || !wait && q.ticket == nil {
			return before == 0, err
		}
		if q.ticket != nil {
			return before == 0, nil
		}
		if err := q.enter(ctx, last+1); err != nil {
			return false, err
		}
		if q.ticket == nil { // another waiter was faster, or the listing is behind
			if err := q.clock.Sleep(ctx, pauses.next()); err != nil {
				return false, err
			}
		}
	}
}

// find looks for a ticket that was not renewed in time, and renews it. Others have
// removed it if this process seemed dead to them: then the place is lost. What kept
// this one from renewing may have kept them, too: they get their TTL anew.
func (q *queue) find(ctx context.Context) error {
	q.tickets = nil
	for t := q.ticket; ; {
		asked := q.clock.Now()
		now, err := t.mutex.get(ctx)
		if err != nil {
			return fmt.Errorf("looking for one's own ticket: %w", err)
		}
		if !t.wrote(now) || now.rec.State != Held { // or it was released by force
			q.ticket = nil
			return nil
		}
		t.at, t.sent, t.renewal = now, asked, nil
		// One that is lost was removed just now, or an older renewal has landed.
		if err = t.renew(ctx, t.ttl()); !errors.Is(err, ErrLost) {
			return err
		}
	}
}

// look counts the tickets before ours, and finds the last. It removes those whose
// waiters renew them no longer.
func (q *queue) look(ctx context.Context) (before, last int, err error) {
	found, err := q.listing(ctx, q.ref.Bucket, q.prefix)
	if err != nil {
		return 0, 0, fmt.Errorf("listing the queue of %s: %w", q, err)
	}
	now, there := q.clock.Now(), map[string]ticketSeen{}
	for _, info := range found {
		n, err := strconv.Atoi(strings.TrimPrefix(info.Key, q.prefix))
		if err != nil || q.key(n) != info.Key || q.ticket != nil && n == q.ticket.number {
			continue
		}
		seen := q.tickets[info.Key]
		if seen.etag != info.ETag {
			seen = ticketSeen{etag: info.ETag, since: now, ttl: q.holder.ttl()}
		}
		gone := false
		if now.Sub(seen.since) > seen.ttl+seen.ttl*rate/100 {
			if gone, err = q.expire(ctx, info, &seen); err != nil {
				return 0, 0, err
			}
		}
		if there[info.Key] = seen; gone {
			continue
		}
		if last = max(last, n); q.ticket == nil || n < q.ticket.number {
			before++
		}
	}
	q.tickets = there
	return before, last, nil
}

// key is that of a ticket.
func (q *queue) key(number int) string { return fmt.Sprintf("%s%012d", q.prefix, number) }

// expire removes a ticket that has not changed for long, unless its own TTL is
// longer. It leaves objects that are no tickets as they are.
func (q *queue) expire(ctx context.Context, info bucket.Info, seen *ticketSeen) (bool, error) {
	ref := event.Object{Bucket: q.ref.Bucket, Key: info.Key}
	ticket := q.object(ref.Bucket, ref.Key)
	now, err := ticket.get(ctx)
	switch {
	case err != nil:
		return false, fmt.Errorf("looking at a ticket in the queue of %s: %w", q, err)
	case !now.exists:
		return true, nil
	case now.etag != info.ETag:
		return false, nil // renewed meanwhile
	case now.rec.ttl() > seen.ttl:
		seen.ttl = now.rec.ttl()
		return false, nil
	}
	// Where the store ignores the condition a waiter may lose its place. Without
	// a clear answer it keeps that until the next look.
	err = q.store.Delete(ctx, ref, bucket.Condition{IfMatch: info.ETag})
	if permanent(err) {
		return false, fmt.Errorf("removing the ticket %s, which nobody renews: %w", ref, err)
	}
	return err == nil, nil
}

// enter tries to get the ticket of a number. Another waiter may be faster.
func (q *queue) enter(ctx context.Context, number int) error {
	m := &Mutex{place: q.object(q.ref.Bucket, q.key(number)), holder: q.holder}
	w := m.place.write(version{}, first(&q.holder, q.nonce(), q.clock.Now()))
	f, err := w.run(ctx)
	if err == nil && f.fate != cell.Landed {
		return nil
	}
	q.ticket = &ticket{&hold{mutex: m, at: f.now, sent: w.sent}, number}
	if err != nil {
		q.ticket.renewal = w // which may have landed
		return fmt.Errorf("taking a ticket: %w", err)
	}
	return nil
}

// leave removes the ticket. One that cannot be removed in time is the next one's of
// the same Mutex, or else the others remove it.
func (q *queue) leave(ctx context.Context, within time.Duration) {
	q.left = q.ticket
	if q.ticket == nil {
		return
	}
	ctx, stop := q.clock.Limit(context.WithoutCancel(ctx), within)
	defer stop()
	pauses := q.retries()
	for {
		err := q.remove(ctx)
		if !passing(err) {
			q.left = nil
			return
		}
		if q.clock.Sleep(ctx, pauses.next()) != nil {
			return
		}
	}
}

// remove removes the ticket once.
func (q *queue) remove(ctx context.Context) error {
	t := q.ticket
	if t.renewal != nil { // of unknown fate
		now, err := t.mutex.get(ctx)
		if err != nil || !t.wrote(now) {
			return err
		}
		t.at = now
	}
	return q.store.Delete(ctx, t.mutex.ref, bucket.Condition{IfMatch: t.at.etag})
}
