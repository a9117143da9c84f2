package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/bucket"
)

// Lead waits until it holds the lock, and works as long as it does: it is the
// leader of all that call it. The work's context ends with the lease. If the
// lease is lost while it works, Lead waits for it again; otherwise it releases it,
// and returns what work returned. It also returns when ctx ends, with its cause,
// and what the store refuses; while it gives no answer Lead waits.
//
// Who leads is what [Bucket.Show] shows.
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

// term is one time as the leader. It ends with the work, even if that panics, and
// tells whether the lease was lost by then.
func (m *Mutex) leadOnce(ctx context.Context, l *Lease, work func(ctx context.Context, token int64) error) (lost bool, err error) {
	defer func() {
		ctx, stop := m.clock.Limit(context.WithoutCancel(ctx), cleanUpTimeout)
		defer stop()
		_ = l.Release(ctx) // at worst its lease runs out
	}()
	err = work(l.Context(), l.Token())
	return errors.Is(context.Cause(l.Context()), ErrLost), err
}

// passing reports that a store may answer otherwise later.
func isTransient(err error) bool {
	for _, kind := range []error{bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrConflict, ErrSlow} {
		if errors.Is(err, kind) {
			return !permanent(err)
		}
	}
	return false
}
