package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// Retry calls do until it succeeds, ctx ends, the limit passes, or retryable returns false. A negative
// limit means none. It prints that it waits for the store.
func (a *App) Retry(ctx context.Context, limit time.Duration, retryable func(error) bool, do func() error) error {
	printed := false
	for began := time.Now(); ; {
		err := do()
		if err == nil || ctx.Err() != nil || !retryable(err) || limit >= 0 && time.Since(began) >= limit {
			return err
		}
		if !printed {
			fmt.Fprintf(a.Err, "pawl: waiting for the store: %v\n", err)
			printed = true
		}
		select {
		case <-time.After(time.Second/2 + rand.N(time.Second)):
		case <-ctx.Done():
			return WithCause(ctx, err)
		}
	}
}

// WithCause adds the cancellation cause of ctx, if any.
func WithCause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
		return fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// NoAnswer reports whether the store gave no definite answer, so that a retry is right.
func NoAnswer(err error) bool {
	return errors.Is(err, bucket.ErrUnavailable) || errors.Is(err, bucket.ErrUnclear) || errors.Is(err, bucket.ErrConflict)
}
