package lock

import "context"

// Mutex is a lock on one object or one register. It is safe for concurrent use. Its goroutines pass
// the lock on, 1,000 times at most, and for at most the TTL or 20 seconds, whichever is longer.
// Then the next goroutine waits for 2 seconds, so that other processes can acquire the lock.
type Mutex struct {
	contender
	turns turnQueue

	// Guarded by the contender's mu.
	cached version // last version that this Mutex wrote, or empty
	tenure tenure
}

// Acquire waits until it holds the lock. It sends a GET and a PUT, and about 45 GETs a minute while
// it waits. It returns an error with the cause and the current holder if ctx ends, and an error
// after a minute without a response of the store. The lease's context is derived from ctx.
func (m *Mutex) Acquire(ctx context.Context) (*Lease, error) { return m.lease(ctx, true) }

// TryAcquire is Acquire without waiting: if another holder has the lock, it returns a *[HeldError].
// It takes over a crashed holder's lease only after this process has watched it for its TTL, so
// call it repeatedly.
func (m *Mutex) TryAcquire(ctx context.Context) (*Lease, error) { return m.lease(ctx, false) }

func (m *Mutex) lease(ctx context.Context, wait bool) (*Lease, error) {
	h, err := m.enter(ctx, wait)
	l, err := grant(ctx, h, err)
	if err == nil {
		l.release = m.release
	}
	return l, err
}
