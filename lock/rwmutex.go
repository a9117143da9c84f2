package lock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlhq/pawl/event"
)

// RWMutex is held by one writer or by up to [MaxSlots] readers. It is safe for concurrent use.
//
// A writer acquires the lease of the key, and then waits until there is no reader. A reader
// acquires a lease below key + ".readers/", and releases it if it then finds a writer. Therefore
// writers have priority, and the store's listings must show all earlier writes.
type RWMutex struct {
	writer  *Mutex
	readers *slots
}

// RWMutex returns the readers-writer lock of an object key. The rules of [Bucket.Mutex] apply.
func (b *Bucket) RWMutex(key string, c Config) (*RWMutex, error) {
	holder, err := b.checkedHolder(key, c)
	if err != nil {
		return nil, fmt.Errorf("the lock %s: %w", event.Quote("s3://"+b.name+"/"+key), err)
	}
	return &RWMutex{
		writer: b.mutex(key, holder), readers: b.slots(key+".readers/", MaxSlots, holder),
	}, nil
}

// Lock waits until it is the only holder, like [Mutex.Acquire], and also lists the readers.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) {
	h, err := m.lock(ctx, true)
	return grant(ctx, h, err)
}

// TryLock is Lock without waiting, like [Mutex.TryAcquire].
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) {
	h, err := m.lock(ctx, false)
	return grant(ctx, h, err)
}

// RLock waits until there is no writer. It sends 2 GETs of the writer lease, a LIST, a PUT, and a
// GET for each reader lease that changed.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	return m.readers.lease(ctx, true, m.tryRLock)
}

// TryRLock is RLock without waiting, like [Mutex.TryAcquire].
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	return m.readers.lease(ctx, false, m.tryRLock)
}

func (m *RWMutex) lock(ctx context.Context, wait bool) (*heldLease, error) {
	answered := m.writer.clock.Now()
	for {
		h, err := m.writer.enter(ctx, wait)
		if err != nil {
			return nil, err
		}
		m.writer.turns.endTurn()
		alone, err := m.writer.acquire(ctx, wait, func(ctx context.Context) (attempt, error) { return m.tryAlone(ctx, h, &answered) })
		if err == nil {
			return alone, nil
		}
		h.releaseBestEffort(ctx)
		switch {
		case !errors.Is(err, ErrLost) || ctx.Err() != nil:
			return nil, err
		case m.writer.clock.Now().Sub(answered) > outageTimeout:
			return nil, fmt.Errorf("list the readers of %s: %w (%v): choose a longer TTL", m.writer, ErrSlow, h.ttl())
		}
	}
}

// tryAlone sets answered to the time of the last response about readers.
func (m *RWMutex) tryAlone(ctx context.Context, h *heldLease, answered *time.Time) (a attempt, err error) {
	err = m.writer.retryUnavailableSince(ctx, *answered, func() error {
		if err := h.renewBestEffort(ctx); err != nil {
			return err
		}
		a, err = m.remainingReaders(ctx, h)
		return err
	})
	switch {
	case err != nil:
		return attempt{}, err
	case a.busy != nil:
		*answered, a.retry = m.writer.clock.Now(), min(a.retry, h.ttl()/renewAfter)
		return a, nil
	case h.remaining(m.writer.clock.Now()) <= 0:
		return attempt{}, fmt.Errorf("%s: %w: it expired while the readers were listed", m.writer, ErrLost)
	}
	return attempt{held: h}, nil
}

// remainingReaders returns a reader, and the time until the first reader's lease expires. It
// releases expired leases.
func (m *RWMutex) remainingReaders(ctx context.Context, writer *heldLease) (attempt, error) {
	if !m.readers.turns.waitTurn(ctx, m.readers.clock) {
		return attempt{}, fmt.Errorf("wait for the readers of %s: %w", m.writer, context.Cause(ctx))
	}
	defer m.readers.turns.endTurn()
	there, err := m.readers.list(ctx, writer.renewBestEffort)
	if err != nil {
		return attempt{}, err
	}
	a := attempt{retry: MaxTTL}
	for _, i := range slices.Sorted(maps.Keys(there)) {
		one := there[i]
		left, err := one.expire(ctx, &one.now)
		if err != nil {
			return attempt{}, err
		}
		if left > 0 {
			a = attempt{retry: min(a.retry, left), busy: one.heldBy(&one.now.rec)}
		}
	}
	return a, nil
}

func (m *RWMutex) tryRLock(ctx context.Context) (attempt, error) {
	now, err := m.writer.read(ctx)
	if err != nil {
		return attempt{}, err
	}
	left, err := m.writer.expire(ctx, &now)
	if left > 0 || err != nil {
		return attempt{retry: left, busy: m.writer.heldBy(&now.rec)}, err
	}
	a, err := m.readers.tryAcquire(ctx)
	if a.held == nil || err != nil {
		return a, err
	}
	now, err = m.writer.read(ctx)
	if err == nil && now.free() && a.held.remaining(m.writer.clock.Now()) > 0 {
		return a, nil
	}
	a.held.releaseBestEffort(ctx)
	return attempt{retry: minPoll, busy: &HeldError{Lock: m.writer.String()}}, err
}
