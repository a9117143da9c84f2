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

// Schedule configures regular audits.
type Schedule struct {
	Every   time.Duration
	Options Options // options of each audit
	// After, if set, runs after each audit under the same lease.
	After func(ctx context.Context) error
}

const (
	maxPollInterval = time.Minute      // longest time between two reads of the last audit's time
	pauseAfterRun   = 10 * time.Second // pause after an audit, or while another process runs an audit
	retryDelay      = 5 * time.Minute  // delay after a failed audit
)

// RunSchedule runs audits on a schedule until ctx ends. If several workers share a
// ledger, one of them runs each audit, and the others read its report from the ledger.
// RunSchedule logs errors and retries.
func (a *Auditor) RunSchedule(ctx context.Context, s Schedule) {
	last := time.Time{} // start of this process's last audit, for a ledger without registers
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

// RunIfDue runs an audit if one is due and no other worker runs one. If the last audit was
// interrupted, RunIfDue resumes it.
func (a *Auditor) RunIfDue(ctx context.Context, s Schedule) error {
	last := time.Time{}
	wait, err := a.untilDue(ctx, s.Every, last)
	if err != nil || wait > 0 {
		return err
	}
	return a.runUnlessHeld(ctx, &s, &last)
}

// runUnlessHeld runs an audit and After. It does nothing if another worker runs an audit
// or has finished one meanwhile.
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
		return nil // the process that holds the lease stores its report
	}
	return err
}

// untilDue returns the time until the next audit is due. The interval starts when the last
// audit starts. The parameter last is the start of this process's last audit.
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

// coversEverything reports whether an audit covered all pipelines and keys of this
// auditor.
func (a *Auditor) coversEverything(r *Report) bool {
	for i := range a.cfg.Pipelines {
		if !slices.ContainsFunc(r.Pipelines, func(p PipelineReport) bool { return p.Name == a.cfg.Pipelines[i].Name }) {
			return false
		}
	}
	return r.Prefix == ""
}
