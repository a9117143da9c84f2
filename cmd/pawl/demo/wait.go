package demo

import (
	"context"
	"time"
)

// until asks done every so often, until it says yes or fails, or ctx ends.
// The error is then ctx's cause.
func until(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		switch ok, err := done(); {
		case ctx.Err() != nil && !ok:
			return context.Cause(ctx) // err is a consequence
		case ok || err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
