package lock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// RWMutex is held by one writer or by any number of readers, up to [MaxSlots]. It
// is safe for concurrent use.
//
// A writer holds the lease of the key itself, the gate, and then waits until no
// reader is left. A reader holds a lease below key + ".readers/", and then looks
// at the gate: if it is held, it withdraws. Of a reader and a writer who come at
// the same time at least one sees the other. So writers go first, and this needs
// a store whose listings show what was written before.
type RWMutex struct {
	gate    *Mutex
	readers *slots
}

// RWMutex returns the readers and writer lock whose gate is the object key, which
// must be as that of [Bucket.Mutex].
func (b *Bucket) RWMutex(key string, c Config) (*RWMutex, error) {
	holder, err := b.holder(key, c)
	if err != nil {
		return nil, fmt.Errorf("the lock %s: %w", event.Quote("s3://"+b.name+"/"+key), err)
	}
	return &RWMutex{
		gate: b.mutex(key, holder), readers: b.slots(key+".readers/", MaxSlots, holder),
	}, nil
}

// Lock waits until it is the only holder, as [Mutex.Acquire] does. Beyond that it
// takes a LIST, and a GET for each reader that comes or goes while it waits.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) { return lease(ctx, true, m.lock) }

// TryLock is Lock without waiting, as [Mutex.TryAcquire].
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) { return lease(ctx, false, m.lock) }

// RLock waits until there is no writer. It takes a GET of the gate, a LIST, a GET
// for each reader that came or went since this RWMutex has looked, a PUT of its own
// lease, and another GET of the gate.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) { return lease(ctx, true, m.rlock) }

// TryRLock is RLock without waiting, as [Mutex.TryAcquire].
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) { return lease(ctx, false, m.rlock) }

func (m *RWMutex) lock(ctx context.Context, wait bool) (*hold, error) {
	answered := m.gate.clock.Now()
	for {
		h, err := m.gate.enter(ctx, wait)
		if err != nil {
			return nil, err
		}
		m.gate.turns.end() // others here may look, too
		err = m.alone(ctx, h, wait, &answered)
		if err == nil {
			return h, nil
		}
		giveUp(ctx, h)
		switch {
		case !errors.Is(err, ErrLost) || ctx.Err() != nil:
			return nil, err
		case m.gate.clock.Now().Sub(answered) > patience:
			return nil, fmt.Errorf("looking for the readers of %s: %w, which is %v: choose a longer TTL", m.gate, ErrSlow, h.ttl())
		}
	}
}

// giveUp releases what was acquired in vain. At worst the lease runs out.
func giveUp(ctx context.Context, h *hold) {
	ctx, stop := h.mutex.clock.Limit(context.WithoutCancel(ctx), abandonTime)
	defer stop()
	_ = h.release(ctx)
}

// alone waits until no reader is left, and renews the gate's lease meanwhile. It
// notes when the store has last told who reads.
func (m *RWMutex) alone(ctx context.Context, h *hold, wait bool, answered *time.Time) error {
	pauses := m.gate.polls()
	var busy *HeldError
	for {
		if err := h.tended(ctx); err != nil {
			return busy.gaveUp(ctx, err)
		}
		pause := min(pauses.next(), h.ttl()/renewAfter)
		left, now, err := m.remaining(ctx, h)
		switch {
		case err != nil:
			if !errors.Is(err, bucket.ErrUnavailable) || m.gate.clock.Now().Sub(*answered) > patience {
				return busy.gaveUp(ctx, err)
			}
		case now == nil && h.left(m.gate.clock.Now()) <= 0:
			return fmt.Errorf("%s: %w: it took too long to look for readers", m.gate, ErrLost)
		case now == nil:
			return nil
		case !wait:
			return now
		default:
			busy, pause, *answered = now, min(pause, left), m.gate.clock.Now()
		}
		if stopped := m.gate.clock.Sleep(ctx, pause); stopped != nil {
			return busy.gaveUp(ctx, errors.Join(stopped, err))
		}
	}
}

// remaining returns one of the readers that are left, and how long its lease may
// last yet. It ends the leases that are over, so that they cannot be renewed, and
// renews the gate's own on the way.
func (m *RWMutex) remaining(ctx context.Context, gate *hold) (time.Duration, *HeldError, error) {
	if !m.readers.turns.take(ctx, m.readers.clock) {
		return 0, nil, fmt.Errorf("waiting for the readers of %s: %w", m.gate, context.Cause(ctx))
	}
	defer m.readers.turns.end()
	there, err := m.readers.list(ctx, gate.tended)
	if err != nil {
		return 0, nil, err
	}
	shortest, busy := MaxTTL, (*HeldError)(nil)
	for _, i := range slices.Sorted(maps.Keys(there)) {
		one := there[i]
		left, err := one.mutex.expire(ctx, &one.now, &one.seen)
		if err != nil {
			return 0, nil, err
		}
		if left > 0 {
			shortest, busy = min(shortest, left), &HeldError{Lock: one.mutex.String(), Record: one.now.rec}
		}
	}
	return shortest, busy, nil
}

// expire releases a lease that is over, in the name of its holder, and returns
// how long it may last yet otherwise. What it finds there it leaves in now and
// seen.
func (m *Mutex) expire(ctx context.Context, now *version, seen *time.Time) (time.Duration, error) {
	for {
		left := m.claimable(*now, *seen)
		if left > 0 || !now.exists || now.rec.State == Released {
			return max(left, 0), nil
		}
		f, err := m.place.write(*now, now.rec.forced(m.nonce(), m.clock.Now())).run(ctx)
		if err != nil {
			return 0, err
		}
		*now, *seen = f.now, f.seen
	}
}

func (m *RWMutex) rlock(ctx context.Context, wait bool) (*hold, error) {
	pauses := m.gate.polls()
	var busy *HeldError
	for {
		left, now, err := m.closed(ctx)
		if err != nil {
			return nil, busy.gaveUp(ctx, err)
		}
		if busy = now; busy == nil {
			h, err := m.enter(ctx, wait)
			if h != nil || err != nil {
				return h, err
			}
			left, busy = pauses.shortest, &HeldError{Lock: m.gate.String()}
		}
		if !wait {
			return nil, busy
		}
		if err := m.gate.clock.Sleep(ctx, min(pauses.next(), left)); err != nil {
			return nil, fmt.Errorf("%w: %w", busy, err)
		}
	}
}

// closed returns the holder of the gate, if there is one.
func (m *RWMutex) closed(ctx context.Context) (time.Duration, *HeldError, error) {
	now, seen, err := m.gate.read(ctx)
	if err != nil {
		return 0, nil, err
	}
	left, err := m.gate.expire(ctx, &now, &seen)
	if err != nil || left == 0 {
		return 0, nil, err
	}
	return left, &HeldError{Lock: m.gate.String(), Record: now.rec}, nil
}

// enter takes a reader's lease, and withdraws if the gate is held by then.
func (m *RWMutex) enter(ctx context.Context, wait bool) (*hold, error) {
	h, err := m.readers.acquire(ctx, wait)
	if err != nil {
		return nil, err
	}
	now, _, err := m.gate.read(ctx)
	if err == nil && (!now.exists || now.rec.State == Released) && h.left(m.gate.clock.Now()) > 0 {
		return h, nil
	}
	giveUp(ctx, h)
	return nil, err
}
