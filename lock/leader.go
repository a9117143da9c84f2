package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/bucket"
)

// Lead waits until it holds the lock, and calls work. All callers of Lead with this lock elect one
// leader at a time. The context of work ends with the lease. If the lease is lost during work, Lead
// waits for the lock again. Otherwise it releases the lock and returns the error of work. When ctx
// ends, Lead returns the cause of ctx. It also returns a permanent error of the store. While the
// store is unavailable, it retries.
//
// [Bucket.Show] returns the current leader.
func (m *Mutex) Lead(ctx context.Context, work func(ctx context.Context, token int64) error) error {
	for {
		l, err := m.Acquire(ctx)
		if isTransient(err) {
			if stopped := m.clock.Sleep(ctx, maxPoll); stopped != nil {
				return fmt.Errorf("%w: %w", err, stopped)
			}
			continue
		}
		if err != nil {
			return err
		}
		lost, err := m.leadOnce(ctx, l, work)
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		case !lost:
			return err
		}
	}
}

// leadOnce calls work while it holds the lease, and releases the lease when work returns or panics.
// It reports whether the lease was lost while work ran.
func (m *Mutex) leadOnce(ctx context.Context, l *Lease, work func(ctx context.Context, token int64) error) (lost bool, err error) {
	defer func() {
		ctx, stop := m.clock.Limit(context.WithoutCancel(ctx), cleanUpTimeout)
		defer stop()
		_ = l.Release(ctx) // if this fails, the lease expires
	}()
	err = work(l.Context(), l.Token())
	return errors.Is(context.Cause(l.Context()), ErrLost), err
}

// isTransient reports whether a later request may succeed.
func isTransient(err error) bool {
	for _, kind := range []error{bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrConflict, ErrSlow} {
		if errors.Is(err, kind) {
			return !permanent(err)
		}
	}
	return false
}
