package lock

import "context"

// Mutex is a lock on one object, or on one register. It is safe for concurrent use. The
// goroutines that share one take turns, and hand the lock on with 1 request for each, at
// most 1,000 times, and for as long as its TTL, or for 20 seconds if that is longer. Then
// the next one waits for 2 seconds, so that other processes have their chance. So does a
// goroutine that acquires the lock again and again.
type Mutex struct {
	contender
	turns turnQueue

	// Guarded by the contender's mu.
	cached version // the version that this Mutex wrote last, or nothing
	tenure tenure
}

// Acquire waits until it holds the lock. It gives up when ctx ends, with its cause and the
// holder of the lock, or when the store has not answered for a minute. ctx bounds the
// waiting, and the lease's context is derived from it.
//
// It takes 2 requests, a GET and a PUT, or 1 if this Mutex held the lock last; while it
// waits about 45 GETs a minute, no more than 2 seconds apart.
func (m *Mutex) Acquire(ctx context.Context) (*Lease, error) { return m.lease(ctx, true) }

// TryAcquire is Acquire without waiting: if another holder has the lock it returns a
// *[HeldError]. A lease that its holder left behind is free only for a process that has
// watched it for as long as it lasts: call it again. It lets no other holder go first.
func (m *Mutex) TryAcquire(ctx context.Context) (*Lease, error) { return m.lease(ctx, false) }

func (m *Mutex) lease(ctx context.Context, wait bool) (*Lease, error) {
	h, err := m.enter(ctx, wait)
	l, err := grant(ctx, h, err)
	if err == nil {
		l.release = m.release
	}
	return l, err
}
