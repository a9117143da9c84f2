package lock

import (
	"context"
	"errors"
)

// Lead waits until it holds the lock, and works as long as it does: it is the
// leader of all that call it. The work's context ends with the lease. If the
// lease is lost, Lead waits for it again; otherwise it releases it, and returns
// what work returned. It also returns when ctx ends, with its cause.
//
// Who leads is what [Bucket.Show] shows.
func (m *Mutex) Lead(ctx context.Context, work func(ctx context.Context, token int64) error) error {
	for {
		l, err := m.Acquire(ctx)
		if err != nil {
			return err
		}
		err = work(l.Context(), l.Token())
		released := l.Release(context.WithoutCancel(ctx))
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		case !errors.Is(released, ErrLost):
			return err // if it was not released its lease runs out
		}
	}
}
