package lock

import "context"

// Mutex is a lock on one object or register. It is safe for concurrent use. Goroutines pass it on
// up to 1,000 times, for at most the TTL or 20 seconds, whichever is longer. Then the next
// goroutine waits for 2 seconds, so that other processes can acquire it.
type Mutex struct {
	contender
	turns turnQueue

	// Guarded by the contender's mu.
	cached version // last version that this Mutex wrote
	tenure tenure
}

// Acquire waits until it holds the lock. It sends a GET and a PUT, and about 45 GETs a minute while
// it waits. If ctx ends, the error has its cause and the current holder. A minute without a
// response is also an error. The lease's context is derived from ctx.
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
