package lock

import (
	"context"
	mathrand "math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/internal/process"
)

// world is what the protocol takes from outside. There is the real one, and one
// that is simulated.
type world struct {
	store bucket.Store
	clock clock
	nonce func() string
	// jitter returns a random time in [0, d).
	jitter func(d time.Duration) time.Duration
	// pace is what the last write took that was answered, in nanoseconds.
	pace atomic.Int64
}

// clock is one process's own. No two are compared.
type clock interface {
	Now() time.Time
	// Sleep waits, or returns the cause if ctx ends first.
	Sleep(ctx context.Context, d time.Duration) error
	// Await waits until done is closed. It returns false if ctx ends first.
	Await(ctx context.Context, done <-chan struct{}) bool
	// Limit ends a context after d.
	Limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

func realWorld(store bucket.Store) *world {
	return &world{store: store, clock: realClock{}, nonce: process.Nonce, jitter: mathrand.N[time.Duration]}
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	return process.Sleep(ctx, d)
}

func (realClock) Await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

func (realClock) Limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// held is how much of a lease is used up: the larger of what the monotonic and
// the wall clock say, for the first stands still while the machine sleeps.
func held(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// backoff is decorrelated jitter: each pause is random between the shortest one
// and three times the one before.
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
type backoff struct {
	*world
	shortest, longest time.Duration
	last              time.Duration
}

// polls are the pauses between two looks of one who waits.
func (w *world) polls() *backoff {
	return &backoff{world: w, shortest: 100 * time.Millisecond, longest: 2 * time.Second}
}

// retries are the pauses after requests that had no clear answer.
func (w *world) retries() *backoff {
	return &backoff{world: w, shortest: 20 * time.Millisecond, longest: time.Second}
}

func (b *backoff) next() time.Duration {
	b.last = max(b.last, b.shortest)
	b.last = min(b.longest, b.shortest+b.jitter(3*b.last-b.shortest+1))
	return b.last
}
