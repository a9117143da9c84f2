package lock

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/event"
)

// Semaphore lets up to n hold it at a time. Each holder has one of n leases,
// below key + ".slots/". It is safe for concurrent use.
type Semaphore struct{ slots *slots }

// Semaphore returns the semaphore of up to n holders, from 1 to [MaxSlots]. All
// must use the same n: whoever finds a holder with another is refused. The key is as
// in [Bucket.Mutex]. A token is that of a slot, and no higher than that of the other
// slots' holders.
func (b *Bucket) Semaphore(key string, n int, c Config) (*Semaphore, error) {
	holder, err := b.checkedHolder(key, c)
	if err == nil && (n < 1 || n > MaxSlots) {
		err = fmt.Errorf("%w: limit %d: want 1 to %d", ErrConfig, n, MaxSlots)
	}
	if err != nil {
		return nil, fmt.Errorf("the semaphore %s: %w", event.Quote("s3://"+b.name+"/"+key), err)
	}
	holder.Limit = n
	return &Semaphore{b.slots(key+".slots/", n, holder)}, nil
}

// Acquire waits until it holds the semaphore, as [Mutex.Acquire] does. It takes a
// LIST, a GET for each slot whose lease has changed since this Semaphore looked at
// it, and a PUT; while it waits about 45 LISTs a minute, and a GET for every change.
func (s *Semaphore) Acquire(ctx context.Context) (*Lease, error) {
	return s.slots.lease(ctx, true, s.slots.tryAcquire)
}

// TryAcquire is Acquire without waiting, as [Mutex.TryAcquire].
func (s *Semaphore) TryAcquire(ctx context.Context) (*Lease, error) {
	return s.slots.lease(ctx, false, s.slots.tryAcquire)
}
