package lock

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/event"
)

// Semaphore is held by up to n holders. It is safe for concurrent use.
type Semaphore struct{ slots *slots }

// Semaphore returns the semaphore of n holders, 1 to [MaxSlots], with leases below key + ".slots/".
// The rules of [Bucket.Mutex] apply. An acquisition fails while a process with another n holds it.
// Tokens of different slots cannot be compared.
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

// Acquire waits like [Mutex.Acquire], with LISTs, a GET for each changed slot, and a PUT.
func (s *Semaphore) Acquire(ctx context.Context) (*Lease, error) {
	return s.slots.lease(ctx, true, s.slots.tryAcquire)
}

// TryAcquire is Acquire without waiting, like [Mutex.TryAcquire].
func (s *Semaphore) TryAcquire(ctx context.Context) (*Lease, error) {
	return s.slots.lease(ctx, false, s.slots.tryAcquire)
}
