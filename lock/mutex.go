package lock

import "context"

// Mutex is a lock on one object or one register. It is safe for concurrent use. Goroutines that
// share a Mutex take turns, and pass the lock on with 1 request each. They do so at most 1,000
// times, and for at most the TTL or 20 seconds, whichever is longer. Then the next goroutine waits
// for 2 seconds, so that other processes can acquire the lock. The same limits apply to a goroutine
// that acquires the lock repeatedly.
type Mutex struct {
	contender
	turns turnQueue

	// The contender's mu guards these fields.
	cached version // the last version that this Mutex wrote, or empty
	tenure tenure
}

// Acquire waits until it holds the lock. If ctx ends first, it returns an error with the cause of
// ctx and the current holder. It also returns an error if the store has not responded for a minute.
// The lease's context is derived from ctx.
//
// It sends a GET and a PUT, or only a PUT if this Mutex was the last holder. While it waits, it
// sends about 45 GETs a minute, at most 2 seconds apart.
func (m *Mutex) Acquire(ctx context.Context) (*Lease, error) { return m.lease(ctx, true) }

// TryAcquire is Acquire without waiting: if another holder has the lock, it returns a *[HeldError].
// It takes over the lease of a crashed holder only after this process has watched it for its TTL,
// so call it repeatedly. Unlike Acquire, it never waits to let other processes acquire the lock
// first.
func (m *Mutex) TryAcquire(ctx context.Context) (*Lease, error) { return m.lease(ctx, false) }

func (m *Mutex) lease(ctx context.Context, wait bool) (*Lease, error) {
	h, err := m.enter(ctx, wait)
	l, err := grant(ctx, h, err)
	if err == nil {
		l.release = m.release
	}
	return l, err
}
