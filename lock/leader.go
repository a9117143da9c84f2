package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/bucket"
)

// Lead waits until it holds the lock, and calls work with a context that ends with the lease. If
// the lease is lost during work, Lead waits again. Otherwise it returns the error of work. It also
// returns the cause of ctx, and permanent errors of the store. It retries while the store is
// unavailable. [Bucket.Show] returns the current leader.
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

// leadOnce reports whether the lease was lost during work. It releases the lease even if work
// panics.
func (m *Mutex) leadOnce(ctx context.Context, l *Lease, work func(ctx context.Context, token int64) error) (lost bool, err error) {
	defer func() {
		ctx, stop := m.clock.Limit(context.WithoutCancel(ctx), cleanUpTimeout)
		defer stop()
		_ = l.Release(ctx)
	}()
	err = work(l.Context(), l.Token())
	return errors.Is(context.Cause(l.Context()), ErrLost), err
}

func isTransient(err error) bool {
	for _, kind := range []error{bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrConflict, ErrSlow} {
		if errors.Is(err, kind) {
			return !permanent(err)
		}
	}
	return false
}
