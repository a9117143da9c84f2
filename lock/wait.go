package lock

import (
	"context"
	"fmt"
	"time"
)

// attempt has either the lease, or the current holder and the time until a retry can succeed.
type attempt struct {
	held  *heldLease
	busy  *HeldError
	retry time.Duration
}

// acquire is the wait loop of all locks.
func (e *env) acquire(ctx context.Context, wait bool, try func(context.Context) (attempt, error)) (*heldLease, error) {
	pauses := &backoff{env: e, shortest: minPoll, longest: maxPoll}
	var busy *HeldError
	for {
		a, err := try(ctx)
		switch {
		case err != nil:
			return nil, busy.withCause(ctx, err)
		case a.held != nil:
			return a.held, nil
		case !wait:
			return nil, a.busy
		}
		busy = a.busy
		if err := e.clock.Sleep(ctx, min(pauses.next(), a.retry)); err != nil {
			return nil, fmt.Errorf("%w: %w", busy, err)
		}
	}
}

func (e *env) lease(ctx context.Context, wait bool, try func(context.Context) (attempt, error)) (*Lease, error) {
	h, err := e.acquire(ctx, wait, try)
	return grant(ctx, h, err)
}
