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
	// maxPollInterval is how often workers look at when the last audit was, at least.
	maxPollInterval = time.Minute
	// pauseAfterRun is between an audit, or one of another worker that is under way, and the
	// next look.
	pauseAfterRun = 10 * time.Second
	// retryDelay is how soon an audit that failed is gone on with.
	retryDelay = 5 * time.Minute
)

// RunSchedule audits as a schedule says until ctx ends. Of all workers over a ledger one
// does it at a time, and the others see in the ledger that it is done. What fails is
// logged, and tried again.
func (a *Auditor) RunSchedule(ctx context.Context, s Schedule) {
	last := time.Time{} // of this process, for a ledger without registers
	for {
		wait, err := a.untilDue(ctx, s.Every, last)
		if err == nil && wait <= 0 {
			err = a.runUnlessHeld(ctx, &s, &last)
			wait = pauseAfterRun
		}
		if err != nil && ctx.Err() == nil {
			a.cfg.Logger.Error("the audit failed; it will resume", "error", err, "in", retryDelay.String())
			if process.Sleep(ctx, retryDelay) != nil {
				return
			}
			continue
		}
		if process.Sleep(ctx, min(wait, maxPollInterval)+rand.N(time.Second)) != nil {
			return
		}
	}
}

// RunIfDue audits if the schedule says that an audit is due and no other worker is at it. It
// continues an audit that was interrupted.
func (a *Auditor) RunIfDue(ctx context.Context, s Schedule) error {
	last := time.Time{}
	wait, err := a.untilDue(ctx, s.Every, last)
	if err != nil || wait > 0 {
		return err
	}
	return a.runUnlessHeld(ctx, &s, &last)
}

// runUnlessHeld audits unless another worker has, or is about to.
func (a *Auditor) runUnlessHeld(ctx context.Context, s *Schedule, last *time.Time) error {
	work := func(ctx context.Context) error {
		if wait, err := a.untilDue(ctx, s.Every, *last); err != nil || wait > 0 {
			return err
		}
		r, err := a.plan(s.Options)
		if err != nil {
			return err
		}
		if err := r.execute(ctx); err != nil {
			return err
		}
		report := r.finalReport()
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
	err := a.withLease(ctx, false, work)
	if errors.Is(err, lock.ErrHeld) {
		return nil // the others see what it does in the ledger
	}
	return err
}

// untilDue is how long the next audit can wait yet. It counts from when the last one
// began, which was long ago if it was broken off.
func (a *Auditor) untilDue(ctx context.Context, every time.Duration, last time.Time) (time.Duration, error) {
	all, err := a.Reports(ctx)
	if err != nil {
		return 0, err
	}
	for i := range all {
		if a.coversEverything(&all[i]) && all[i].Started.After(last) {
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

// coversEverything reports that an audit left out nothing of what this one audits.
func (a *Auditor) coversEverything(r *Report) bool {
	for i := range a.cfg.Pipelines {
		if !slices.ContainsFunc(r.Pipelines, func(p PipelineReport) bool { return p.Name == a.cfg.Pipelines[i].Name }) {
			return false
		}
	}
	return r.Prefix == ""
}
