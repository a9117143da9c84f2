package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// patiently does what needs the store, and does it again as long as the store is
// unavailable, until the limit or until ctx ends. A limit below 0 is none. It tells
// once that it waits.
func (a *app) patiently(ctx context.Context, limit time.Duration, do func() error) error {
	told := false
	for began := time.Now(); ; {
		err := do()
		if err == nil || ctx.Err() != nil || sysexitCode(err) != exitUnavailable || limit >= 0 && time.Since(began) >= limit {
			return err
		}
		if !told {
			fmt.Fprintf(a.Err, "pawl: waiting for the store: %v\n", err)
			told = true
		}
		select {
		case <-time.After(time.Second/2 + rand.N(time.Second)):
		case <-ctx.Done():
			return because(ctx, err)
		}
	}
}

// because adds to an error why ctx ended, if it has.
func because(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
		return fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// answering is a store that is given up if a listing stands still. Reads are bounded
// by package lock.
type answering struct{ bucket.Store }

// List implements [bucket.Store].
func (s answering) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		late := time.AfterFunc(tryTime, func() { cancel(errSilent) })
		defer late.Stop()
		for info, err := range s.Store.List(ctx, name, prefix, startAfter) {
			late.Stop()
			if err != nil {
				err = because(ctx, err)
			}
			if !yield(info, err) {
				return
			}
			late.Reset(tryTime)
		}
	}
}
