package pipelinecmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/event"
)

type auditOptions struct {
	audit.Options
	list      bool
	inventory string
}

// NewAuditCommand returns the command audit.
func NewAuditCommand(a *app.App) *cobra.Command {
	o := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Find changes whose notifications were lost, and schedule their repair",
		Long: `Audit lists the objects of the pipelines and compares them with the ledger. It
finds objects without a row, objects that differ from their row, and rows whose
object is gone. Before an audit writes a row, it sends a HEAD request for the
object. The workers then repair the losses. If no worker runs, the next "pawl run"
repairs them.

If more than 100 objects and more than 10 % of the objects in the ledger are gone,
the audit raises no removals and exits with 3, because the endpoint or the bucket
may be wrong. --allow-removals schedules them.

An audit ignores objects that changed within the settle window, because their
notification may still arrive. If nothing was lost, an audit writes no row.

One audit runs at a time per ledger. A second audit waits. An interrupted audit
resumes when you start it again with the same flags.

With --inventory an audit reads a report of S3 Inventory, in CSV or Parquet,
instead of listing the bucket. The argument is the report's manifest, or a folder
with a copy of the report. The audit ignores objects that changed after S3 made the
report. It sorts the report on disk, in the folder for temporary files.

With --outputs an audit also compares outputs with objects. Workers create missing
outputs again, and remove outputs whose object is gone. Each of the two comparisons
lists the outputs once.`,
		Example: `  pawl audit --dry-run
  pawl audit --pipeline grayscale --prefix in/2026/ --settle-window 1h
  pawl audit --outputs --redrive
  pawl audit --inventory s3://reports/photos/daily/2026-03-01T01-00Z/manifest.json
  pawl audit --list`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("settle-window") && o.SettleWindow <= 0 {
				return app.Usage("--settle-window %s: want a duration above 0", o.SettleWindow)
			}
			bar := a.NewProgress()
			return a.WithRuntime(cmd.Context(), bar, bar.LogLevel(), a.Parts.LoadWithoutSources, o.DryRun || o.list, func(ctx context.Context, m *app.Runtime) error {
				return auditRows(ctx, m, a, o, bar)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Pipelines, "pipeline", nil, "only these `pipelines`, separated by commas")
	flags.StringVar(&o.Prefix, "prefix", "", "only keys with this prefix: `s3://bucket/prefix`, or a key prefix in any bucket")
	flags.DurationVar(&o.SettleWindow, "settle-window", 0, "settle window: ignore objects that changed within this `duration` (default: the configuration's, or 12h)")
	flags.BoolVar(&o.DryRun, "dry-run", false, "report losses without writing")
	flags.BoolVar(&o.Outputs, "outputs", false, "also compare outputs with objects")
	flags.StringVar(&o.inventory, "inventory", "", "read this inventory `report` instead of listing: s3://bucket/…/manifest.json, or a folder")
	flags.BoolVar(&o.Redrive, "redrive", false, "reset the attempts of dead and failed objects")
	flags.BoolVar(&o.AllowRemovals, "allow-removals", false, "schedule removals even if they exceed the limit")
	flags.BoolVar(&o.list, "list", false, "show the reports of the last audits")
	_ = cmd.RegisterFlagCompletionFunc("pipeline", completePipelines(a))
	app.DocumentExitCodes(cmd, app.ExitCodes+`  3  the audit found losses: see the report
`)
	return cmd
}

func auditRows(ctx context.Context, m *app.Runtime, a *app.App, o *auditOptions, bar *app.Progress) (err error) {
	if err := o.inBucket(m.Config); err != nil {
		return err
	}
	m.Parts.Audit.Every = 0 // skip the checks for schedules
	p, err := m.Build()
	if err != nil {
		return err
	}
	before, err := p.Audits(ctx)
	if err != nil {
		return err
	}
	if o.list {
		return printAudits(a, before)
	}
	expect := expectedObjects(before, o)
	if o.inventory != "" {
		report, err := openInventory(ctx, m, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, report.Close()) }()
		expect = report.Objects
	}
	if err := checkBuckets(ctx, m); err != nil {
		return err
	}
	w := newAuditProgress(m.Log, bar, expect)
	o.Watch = w.update
	report, err := p.Audit(ctx, o.Options)
	bar.End()
	if errors.Is(err, audit.ErrOptions) {
		return app.Usage("%w", err)
	}
	if printErr := printAudit(a, &report, err); printErr != nil {
		return errors.Join(err, printErr)
	}
	return auditFailure(&report, err)
}

// inBucket splits a bucket off the prefix and selects its pipelines.
func (o *auditOptions) inBucket(c *config.Config) error {
	rest, named := strings.CutPrefix(o.Prefix, "s3://")
	if !named {
		return nil
	}
	bucket, prefix, _ := strings.Cut(rest, "/")
	var names []string
	for i := range c.Pipelines {
		p := &c.Pipelines[i]
		if p.Match.Bucket == bucket && (len(o.Pipelines) == 0 || slices.Contains(o.Pipelines, p.Name)) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return app.Usage("--prefix %s: no pipeline reads bucket %s", o.Prefix, event.Quote(bucket))
	}
	o.Prefix, o.Pipelines = prefix, names
	return nil
}

func auditFailure(report *pawl.AuditReport, err error) error {
	total := report.Total()
	switch {
	case err != nil && report.Started.IsZero():
		return err // it did not start
	case err != nil:
		return app.Failed(app.WhileRunning(err), "run the audit again with the same flags to resume it")
	}
	f := &app.Failure{Code: app.ExitFailed}
	if total.Found() > 0 {
		f.Code = app.ExitFound
	}
	switch {
	case total.Inaccessible > 0:
		f.Err = fmt.Errorf("%d objects are inaccessible: the store denies access, rejects their names, or cannot list them", total.Inaccessible)
		f.Hint = "allow s3:GetObject on these objects, remove the objects that the store cannot list (the log names them), and audit again"
	case f.Code == app.ExitFailed:
		return nil
	}
	return f
}

// expectedObjects returns the number of objects in the last comparable audit, or -1.
func expectedObjects(before []pawl.AuditReport, o *auditOptions) int64 {
	for i := range before {
		r := &before[i]
		total := r.Total()
		if r.Prefix == o.Prefix && len(o.Pipelines) == 0 && total.Listed > 0 {
			return total.Listed
		}
	}
	return -1
}
