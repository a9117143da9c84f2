package audit

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/lock"
)

// Schedule says how often all is audited.
type Schedule struct {
	Every   time.Duration
	Options Options // of each audit
	// After, when set, follows each audit, under the same lease.
	After func(ctx context.Context) error
}

const (
	// glance is how often workers look at when the last audit was, at least.
	glance = time.Minute
	// rest is between an audit, or one of another worker that is under way, and the
	// next look.
	rest = 10 * time.Second
	// again is how soon an audit that failed is gone on with.
	again = 5 * time.Minute
)

// Follow audits as a schedule says until ctx ends. Of all workers over a ledger one
// does it at a time, and the others see in the ledger that it is done. What fails is
// logged, and tried again.
func (a *Auditor) Follow(ctx context.Context, s Schedule) {
	last := time.Time{} // of this process, for a ledger without registers
	for {
		wait, err := a.due(ctx, s.Every, last)
		if err == nil && wait <= 0 {
			err = a.turn(ctx, &s, &last)
			wait = rest
		}
		if err != nil && ctx.Err() == nil {
			a.cfg.Logger.Error("the audit failed; it will be gone on with", "error", err, "in", again.String())
			if process.Sleep(ctx, again) != nil {
				return
			}
			continue
		}
		if process.Sleep(ctx, min(wait, glance)+rand.N(time.Second)) != nil {
			return
		}
	}
}

// Once audits if the schedule says that an audit is due and no other worker is at it. It
// continues an audit that was interrupted.
func (a *Auditor) Once(ctx context.Context, s Schedule) error {
	last := time.Time{}
	wait, err := a.due(ctx, s.Every, last)
	if err != nil || wait > 0 {
		return err
	}
	return a.turn(ctx, &s, &last)
}

// turn audits unless another worker has, or is about to.
func (a *Auditor) turn(ctx context.Context, s *Schedule, last *time.Time) error {
	work := func(ctx context.Context) error {
		if wait, err := a.due(ctx, s.Every, *last); err != nil || wait > 0 {
			return err
		}
		r, err := a.plan(s.Options)
		if err != nil {
			return err
		}
		if err := r.do(ctx); err != nil {
			return err
		}
		report := r.end()
		*last = report.Started
		report.Log(a.cfg.Logger)
		if s.After == nil {
			return nil
		}
		return s.After(ctx)
	}
	if a.registers == nil {
		return work(ctx)
	}
	err := a.alone(ctx, false, work)
	if errors.Is(err, lock.ErrHeld) {
		return nil // the others see what it does in the ledger
	}
	return err
}

// due is how long the next audit can wait yet. It counts from when the last one
// began, which was long ago if it was broken off.
func (a *Auditor) due(ctx context.Context, every time.Duration, last time.Time) (time.Duration, error) {
	all, err := a.Reports(ctx)
	if err != nil {
		return 0, err
	}
	for i := range all {
		if a.whole(&all[i]) && all[i].Started.After(last) {
			last = all[i].Started
		}
	}
	if last.IsZero() {
		return 0, nil
	}
	age := time.Since(last)
	a.observe(engine.Notice{Kind: engine.LastAudit, Took: age})
	return every - age, nil
}

// whole reports that an audit left out nothing of what this one audits.
func (a *Auditor) whole(r *Report) bool {
	for i := range a.cfg.Pipelines {
		if !slices.ContainsFunc(r.Pipelines, func(p PipelineReport) bool { return p.Name == a.cfg.Pipelines[i].Name }) {
			return false
		}
	}
	return r.Prefix == ""
}
