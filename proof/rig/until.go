package rig

import (
	"context"
	"time"
)

// Until calls done at intervals until it returns true or an error, or until ctx ends.
func Until(ctx context.Context, interval time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		switch ok, err := done(); {
		case ctx.Err() != nil && !ok:
			return context.Cause(ctx)
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
