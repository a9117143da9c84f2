package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Audit compares the objects with the ledger once, and schedules attempts for objects whose notifications
// were lost. If o.SettleWindow is 0, that of the configuration applies. The report is valid even if there
// is an error. Outside of Run, the next Run processes the found losses.
func (p *Pawl) Audit(ctx context.Context, o AuditOptions) (AuditReport, error) {
	if p.auditor == nil {
		return AuditReport{}, fmt.Errorf("%w: an audit needs an object store", ErrConfig)
	}
	o.SettleWindow = cmp.Or(o.SettleWindow, p.cfg.Audit.SettleWindow)
	if err := p.cfg.validateSettle(o.SettleWindow); err != nil {
		return AuditReport{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return p.auditor.Run(ctx, o)
}

// Audits returns the reports of the ledger's last audits, newest first.
func (p *Pawl) Audits(ctx context.Context) ([]AuditReport, error) {
	if p.auditor == nil {
		return nil, nil
	}
	return p.auditor.Reports(ctx)
}

// AuditIfDue runs the scheduled audit and its purge, if the last audit began longer than Audit.Every ago
// and no other process is auditing. It continues an interrupted audit. With a Deadline, it stops in time
// and returns nil, and the next call continues.
func (p *Pawl) AuditIfDue(ctx context.Context) error {
	if p.auditor == nil {
		return fmt.Errorf("%w: an audit needs an object store", ErrConfig)
	}
	if !p.cfg.Deadline.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, p.cfg.Deadline.Add(-storeReserve))
		defer stop()
	}
	err := p.auditor.RunIfDue(ctx, p.schedule())
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		p.cfg.Logger.Info("the audit reached its deadline; the next one continues it", "error", err)
		return nil
	}
	return err
}

func (p *Pawl) schedule() audit.Schedule {
	return audit.Schedule{
		Every:   p.cfg.Audit.Every,
		Options: audit.Options{SettleWindow: p.cfg.Audit.SettleWindow},
		After: func(ctx context.Context) error {
			done, err := p.Purge(ctx, nil, false, nil)
			p.cfg.Logger.Info("purged", "rows", done.Dropped)
			return err
		},
	}
}

// Purge deletes the rows of removed objects that settled longer than RowRetention ago, in the given
// pipelines or in all. With PurgeSettled it also deletes settled rows of existing objects. It never deletes
// a row that is leased, failed, dead or scheduled for verification. With dryRun it only counts. It calls
// progress, which may be nil, with the counts so far.
func (p *Pawl) Purge(ctx context.Context, pipelines []string, dryRun bool, progress func(Purged)) (all Purged, err error) {
	policy := p.cfg.policy()
	for i := range p.cfg.Pipelines {
		name := p.cfg.Pipelines[i].Name
		if len(pipelines) > 0 && !slices.Contains(pipelines, name) {
			continue
		}
		before := all
		watch := func(one Purged) {
			if all = before.Plus(one); progress != nil {
				progress(all)
			}
		}
		one, err := audit.Purge(ctx, ledger.NewRows(p.cfg.Ledger), name, &policy, dryRun, watch)
		if all = before.Plus(one); err != nil {
			return all, fmt.Errorf("purge pipeline %s: %w", event.Quote(name), err)
		}
	}
	return all, nil
}

func (c *Config) auditor() (*audit.Auditor, error) {
	if c.Objects == nil {
		return nil, nil
	}
	all := make([]audit.Pipeline, len(c.Pipelines))
	for i := range c.Pipelines {
		all[i] = c.Pipelines[i].audited()
	}
	return audit.New(audit.Config{
		Ledger: ledger.NewRows(c.Ledger), Objects: c.Objects, Pipelines: all, TTL: c.Lease.TTL, Logger: c.Logger, Observer: c.Observer,
	})
}

func (p *Pipeline) audited() audit.Pipeline {
	a := audit.Pipeline{
		Name: p.Name, Bucket: p.Match.Bucket, Prefix: p.Match.Prefix, Match: p.Match.match, EachVersion: p.EachVersion,
	}
	if p.To != nil {
		a.Output = &audit.Output{Bucket: p.To.Bucket, Prefix: p.To.Prefix, Of: p.OutputOf, Source: p.inputOf}
	}
	return a
}

// inputOf is the inverse of OutputOf.
func (p *Pipeline) inputOf(output string) (ledger.RowKey, bool) {
	rest, ours := strings.CutPrefix(output, p.To.Prefix)
	rest, whole := strings.CutSuffix(rest, p.To.Suffix)
	k := ledger.RowKey{Pipeline: p.Name, Bucket: p.Match.Bucket, Key: p.Match.Prefix + rest}
	if at := strings.LastIndexByte(k.Key, '@'); p.EachVersion {
		if at < 0 {
			return k, false
		}
		k.Key, k.VersionID = k.Key[:at], k.Key[at+1:]
	}
	return k, ours && whole && p.Match.match(event.Object{Bucket: k.Bucket, Key: k.Key})
}

// validateAudit rejects settings with which an audit could mistake a late event for a lost or new
// one.
func (c *Config) validateAudit() (errs []error) {
	if least := max(c.Audit.SettleWindow, c.Audit.MaxDelay); c.Audit.RowRetention <= least {
		errs = append(errs, fmt.Errorf("audit.row_retention is %s: it must exceed audit.settle_window and audit.max_delay, here %s, because a late event must find the row of the removal",
			c.Audit.RowRetention, least))
	}
	if c.Audit.Every == 0 {
		return errs
	}
	if c.NoSweep {
		errs = append(errs, errors.New("scheduled audits need sweeps: the objects that an audit finds have no message that starts an attempt"))
	}
	if c.Objects == nil {
		errs = append(errs, errors.New("scheduled audits need an object store"))
	}
	if err := c.validateSettle(c.Audit.SettleWindow); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// In event order, an audit must not overtake an event.
func (c *Config) validateSettle(settle time.Duration) error {
	for i := range c.Pipelines {
		if c.Pipelines[i].Order == EventOrder && settle <= c.Audit.MaxDelay {
			return fmt.Errorf("pipeline %s is in event order, so an audit must ignore changes whose notification may still arrive: audit.settle_window is %s, want more than audit.max_delay, %s",
				event.Quote(c.Pipelines[i].Name), settle, c.Audit.MaxDelay)
		}
	}
	return nil
}
