package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// Retry calls do until it succeeds, ctx ends, the limit has passed, or again
// reports that the error will not go away. A limit below 0 means no limit. It prints
// once that it waits for the store.
func (a *App) Retry(ctx context.Context, limit time.Duration, again func(error) bool, do func() error) error {
	told := false
	for began := time.Now(); ; {
		err := do()
		if err == nil || ctx.Err() != nil || !again(err) || limit >= 0 && time.Since(began) >= limit {
			return err
		}
		if !told {
			fmt.Fprintf(a.Err, "pawl: waiting for the store: %v\n", err)
			told = true
		}
		select {
		case <-time.After(time.Second/2 + rand.N(time.Second)):
		case <-ctx.Done():
			return WithCause(ctx, err)
		}
	}
}

// WithCause adds to an error why ctx ended, if it has.
func WithCause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
		return fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// NoAnswer reports whether the store gave no clear answer, so that the request may
// be sent again.
func NoAnswer(err error) bool {
	return errors.Is(err, bucket.ErrUnavailable) || errors.Is(err, bucket.ErrUnclear) || errors.Is(err, bucket.ErrConflict)
}
