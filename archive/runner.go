package archive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Runner stores records in archives, each with a worker of its own. Any number of runners
// may run over the same registers, in any number of processes: they share the shards.
type Runner struct {
	Archives []*Archive
}

// Run proves the archives' stores, claims their prefixes, and stores all shards until ctx
// ends. Then it leaves its shards to other workers, for which it takes no longer than the
// ShutdownTimeout. A failure of one shard is logged and retried. If an archive cannot be stored at
// all, Run continues with the others, and returns the error when they have ended.
func (r *Runner) Run(ctx context.Context) error {
	var work sync.WaitGroup
	errs := make([]error, len(r.Archives))
	for i, a := range r.Archives {
		work.Go(func() {
			err := a.run(ctx)
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

// run runs a worker in a store that was proved. A store that takes a write whose condition
// does not hold would lose records.
func (a *Archive) run(ctx context.Context) error {
	if err := a.Prove(ctx); err != nil {
		return err
	}
	a.Logger.Info("archive", "name", a.Name, "to", a.object(a.Prefix).String(), "format", a.Format)
	return a.work(ctx)
}

// logStored logs an object that was stored.
func (a *Archive) logStored(shard string, o *Planned) {
	behind := "unknown" // as for a gap at the very beginning
	if !o.Arrival.IsZero() {
		behind = a.Now().Sub(o.Arrival).Round(time.Millisecond).String()
	}
	a.Logger.Info("stored", "archive", a.Name, "shard", shard, "key", o.Key, "records", o.Count, "behind", behind)
}
