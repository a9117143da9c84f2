package rig

import (
	"context"
	"time"
)

// Until calls done at intervals until done returns true or an error. If ctx ends first, Until
// returns the cancellation cause.
func Until(ctx context.Context, interval time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		switch ok, err := done(); {
		case ctx.Err() != nil && !ok:
			return context.Cause(ctx) // the error is only a consequence of the end of ctx
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
