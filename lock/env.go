package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/internal/process"
)

// env is the environment of the protocol. Simulation tests replace it.
type env struct {
	store bucket.Store
	clock clock
	nonce func() string
	// jitter returns a random duration in [0, d).
	jitter func(d time.Duration) time.Duration
	// lastWrite is the duration of the last answered write in nanoseconds.
	lastWrite atomic.Int64
}

type clock interface {
	Now() time.Time
	// Sleep returns the cause of ctx if ctx ends first.
	Sleep(ctx context.Context, d time.Duration) error
	// Await reports false if ctx ends before done is closed.
	Await(ctx context.Context, done <-chan struct{}) bool
	Limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

func realEnv(store bucket.Store) *env {
	return &env{store: store, clock: realClock{}, nonce: process.Nonce, jitter: mathrand.N[time.Duration]}
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

// The monotonic clock stops while the machine sleeps.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// backoff is decorrelated jitter: each pause is random between the shortest pause and three times
// the last one. https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
type backoff struct {
	*env
	shortest, longest time.Duration
	last              time.Duration
}

const (
	minPoll = 100 * time.Millisecond
	maxPoll = 2 * time.Second
)

func (e *env) retryPauses() *backoff {
	return &backoff{env: e, shortest: 20 * time.Millisecond, longest: time.Second}
}

func (b *backoff) next() time.Duration {
	b.last = max(b.last, b.shortest)
	b.last = min(b.longest, b.shortest+b.jitter(3*b.last-b.shortest+1))
	return b.last
}

const (
	// callTimeout is the limit of one request, unless the TTL is shorter.
	callTimeout = 10 * time.Second
	// transferTimeout is the limit for MaxUpdate bytes.
	transferTimeout = 5 * time.Minute
	// outageTimeout limits retries while no request has a known outcome.
	outageTimeout = time.Minute
)

func (e *env) retryUnavailable(ctx context.Context, ask func() error) error {
	return e.retryUnavailableSince(ctx, e.clock.Now(), ask)
}

// The store last responded at began.
func (e *env) retryUnavailableSince(ctx context.Context, began time.Time, ask func() error) error {
	pace := e.retryPace(began)
	var before error // names the real cause if the context ends
	for {
		err := ask()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", cmp.Or(before, err), context.Cause(ctx))
		case !errors.Is(err, cell.ErrUnavailable):
			return err
		}
		if stop := pace(ctx, 0, err); stop != nil {
			return stop
		}
		before = err
	}
}

// retryPace returns the error once outageTimeout has passed since began.
func (e *env) retryPace(began time.Time) func(context.Context, int, error) error {
	pauses := e.retryPauses()
	return func(ctx context.Context, _ int, answer error) error {
		if e.clock.Now().Sub(began) > outageTimeout {
			return answer
		}
		if stopped := e.clock.Sleep(ctx, pauses.next()); stopped != nil {
			return fmt.Errorf("%w: %w", answer, stopped)
		}
		return nil
	}
}
