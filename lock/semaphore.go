package lock

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/event"
)

// Semaphore is held by up to n holders. It is safe for concurrent use.
type Semaphore struct{ slots *slots }

// Semaphore returns the semaphore of up to n holders, from 1 to [MaxSlots], with leases below key +
// ".slots/". All processes must use the same n: an acquisition fails while a process with another n
// holds the semaphore. [Bucket.Mutex] must accept the key. Tokens of different slots cannot be
// compared.
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

// Acquire waits until it holds the semaphore, like [Mutex.Acquire]. It sends a LIST, a GET for each
// changed slot, and a PUT; while it waits, about 45 LISTs a minute.
func (s *Semaphore) Acquire(ctx context.Context) (*Lease, error) {
	return s.slots.lease(ctx, true, s.slots.tryAcquire)
}

// TryAcquire is Acquire without waiting, like [Mutex.TryAcquire].
func (s *Semaphore) TryAcquire(ctx context.Context) (*Lease, error) {
	return s.slots.lease(ctx, false, s.slots.tryAcquire)
}
