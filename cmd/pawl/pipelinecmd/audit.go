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

// auditOptions are the flags of audit.
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
		Short: "Find what notifications have lost, and have it done",
		Long: `Audit lists the objects of the pipelines and compares them with the ledger:
objects that it never heard of, objects that are others than those it knows, and
objects that are gone. Before anything is written, each such object is looked at
once more. What was lost is then done by the workers; where none runs, by the
next "pawl run".

If more than 100 objects and more than 10 % of those that the ledger knows are
gone, the audit raises no removals and exits with 3, because the endpoint or the
bucket may be wrong. --allow-removals raises them.

What has changed within the settle time is left alone, for its notification may
be on its way. On a bucket about which nothing was lost an audit writes no row.

One audit runs at a time over a ledger: another waits. One that is broken off, or
killed, goes on where it was when it is started with the same flags.

With --inventory the objects are those of a report of S3 Inventory, in CSV or
Parquet, that is about the bucket of the pipelines: its manifest, or a folder with
a copy of it. What has changed since S3 made it is left to the next one. The
report is sorted on disk, in the folder for temporary files.

With --outputs it also compares outputs with objects: an object whose output is
gone is done again, an output whose object is gone is removed. That costs a
listing of the outputs for each of the two.`,
		Example: `  pawl audit --dry-run
  pawl audit --pipeline grayscale --prefix in/2026/ --settle-window 1h
  pawl audit --outputs --redrive
  pawl audit --inventory s3://reports/photos/daily/2026-03-01T01-00Z/manifest.json
  pawl audit --list`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("settle-window") && o.SettleWindow <= 0 {
				return app.Usage("--settle-window %s: want a time that is larger than 0", o.SettleWindow)
			}
			bar := a.NewProgress()
			return a.WithRuntime(cmd.Context(), bar, bar.LogLevel(), a.Parts.LoadWithoutSources, o.DryRun || o.list, func(ctx context.Context, m *app.Runtime) error {
				return auditRows(ctx, m, a, o, bar)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Pipelines, "pipeline", nil, "only these `pipelines`, separated by commas")
	flags.StringVar(&o.Prefix, "prefix", "", "only keys that begin so: `s3://bucket/prefix`, or a key's prefix in any bucket")
	flags.DurationVar(&o.SettleWindow, "settle-window", 0, "leave alone what has changed within this `time` (default: the configuration's, or 12h)")
	flags.BoolVar(&o.DryRun, "dry-run", false, "find, and write nothing")
	flags.BoolVar(&o.Outputs, "outputs", false, "compare outputs with objects as well")
	flags.StringVar(&o.inventory, "inventory", "", "compare with this `report`, s3://bucket/…/manifest.json or a folder, and list nothing")
	flags.BoolVar(&o.Redrive, "redrive", false, "give dead and failed objects fresh attempts")
	flags.BoolVar(&o.AllowRemovals, "allow-removals", false, "raise removals however many there are")
	flags.BoolVar(&o.list, "list", false, "show the last audits, and what they found")
	_ = cmd.RegisterFlagCompletionFunc("pipeline", completePipelines(a))
	app.DocumentExitCodes(cmd, app.ExitCodes+`  3  something was lost, or missing: the report says what
`)
	return cmd
}

func auditRows(ctx context.Context, m *app.Runtime, a *app.App, o *auditOptions, bar *app.Progress) (err error) {
	if err := o.inBucket(m.Config); err != nil {
		return err
	}
	m.Parts.Audit.Every = 0 // what only a schedule needs is no concern of this one
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

// inBucket takes the bucket off a prefix, and leaves the pipelines that take objects
// from it.
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
		return app.Usage("--prefix %s: none of the pipelines takes objects of bucket %s", o.Prefix, event.Quote(bucket))
	}
	o.Prefix, o.Pipelines = prefix, names
	return nil
}

// auditFailure is what an audit ends with, if any.
func auditFailure(report *pawl.AuditReport, err error) error {
	total := report.Total()
	switch {
	case err != nil && report.Started.IsZero():
		return err // there was none
	case err != nil:
		return app.Failed(app.WhileRunning(err), "an audit with the same flags goes on where this one was")
	}
	f := &app.Failure{Code: app.ExitFailed}
	if total.Found() > 0 {
		f.Code = app.ExitFound
	}
	switch {
	case total.Inaccessible > 0:
		f.Err = fmt.Errorf("%d objects could not be looked at: the store denies it, refuses their names, or cannot list them", total.Inaccessible)
		f.Hint = "give this process the right to read them (s3:GetObject), remove those that the store cannot list (the log names them), and audit again"
	case f.Code == app.ExitFailed:
		return nil
	}
	return f
}

// expectedObjects is how many objects there are to list: as many as last time; -1 where
// nobody knows.
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
