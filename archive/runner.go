package archive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Runner stores records in archives, with one worker for each. Runners that share registers divide
// the shards among themselves.
type Runner struct {
	Archives []*Archive
}

// Run checks the stores, claims the prefixes, and stores all shards until ctx ends. It logs the
// failure of a shard and retries. If an archive fails, the others continue, and Run returns the
// error when they have ended.
func (r *Runner) Run(ctx context.Context) error {
	var work sync.WaitGroup
	errs := make([]error, len(r.Archives))
	for i, a := range r.Archives {
		work.Go(func() {
			err := a.run(ctx)
			a.status.set(func(s *Status) { s.Err = err })
			if err == nil || len(r.Archives) == 1 {
				errs[i] = err
				return
			}
			errs[i] = fmt.Errorf("archive %s: %w", a.Name, err)
			a.Logger.Error("archive stopped with an error; the other archives continue", "name", a.Name, "error", err)
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

func (a *Archive) run(ctx context.Context) error {
	if err := a.Prove(ctx); err != nil {
		return err
	}
	a.Logger.Info("archive", "name", a.Name, "to", a.object(a.Prefix).String(), "format", a.Format)
	return a.work(ctx)
}

func (a *Archive) logStored(shard string, o *Planned) {
	behind := "unknown" // a gap at the beginning of a shard
	if !o.Arrival.IsZero() {
		behind = a.Now().Sub(o.Arrival).Round(time.Millisecond).String()
	}
	a.Logger.Info("stored", "archive", a.Name, "shard", shard, "key", o.Key, "records", o.Count, "behind", behind)
}
