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
	Options Options
	// After, if set, runs after each audit under the same lease.
	After func(ctx context.Context) error
}

const (
	maxPollInterval = time.Minute // longest time between two reads of the last report
	pauseAfterRun   = 10 * time.Second
	retryDelay      = 5 * time.Minute // after a failed audit
)

// RunSchedule runs audits until ctx ends, and logs and retries errors. Of the workers that share
// a ledger, one runs each audit.
func (a *Auditor) RunSchedule(ctx context.Context, s Schedule) {
	last := time.Time{} // used without registers
	for {
		wait, err := a.untilDue(ctx, s.Every, last)
		if err == nil && wait <= 0 {
			err = a.runUnlessHeld(ctx, &s, &last)
			wait = pauseAfterRun
		}
		a.observeFailure(ctx, err)
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

// RunIfDue runs or resumes an audit if one is due and no other worker runs one.
func (a *Auditor) RunIfDue(ctx context.Context, s Schedule) (err error) {
	defer func() { a.observeFailure(ctx, err) }()
	last := time.Time{}
	wait, err := a.untilDue(ctx, s.Every, last)
	if err != nil || wait > 0 {
		return err
	}
	return a.runUnlessHeld(ctx, &s, &last)
}

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
		return nil // that process stores its report
	}
	return err
}

// untilDue counts from the start of the last audit. The parameter last is the start of this
// process's last audit.
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
	due := 0
	if age >= every {
		due = 1
	}
	a.observe(engine.Notice{Kind: engine.LastAudit, Took: age, N: due})
	return every - age, nil
}

func (a *Auditor) coversEverything(r *Report) bool {
	for i := range a.cfg.Pipelines {
		if !slices.ContainsFunc(r.Pipelines, func(p PipelineReport) bool { return p.Name == a.cfg.Pipelines[i].Name }) {
			return false
		}
	}
	return r.Prefix == ""
}
