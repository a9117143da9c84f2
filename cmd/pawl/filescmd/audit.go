package filescmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/server"
)

func newAuditCommand(a *app.App) *cobra.Command {
	var o files.AuditOptions
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare the index with the bucket, and repair differences",
		Long: `Audit lists the bucket and compares it with the index. It reconciles each difference
with the object before it writes: uploads without a notification become visible,
files whose object is missing or different become lost, and leftovers of removed
files are deleted. If index and bucket agree, an audit writes nothing.

Orphans are objects and multipart uploads that are named like a file but have no row.
An audit keeps them, because an index that was restored from a backup has no rows for
later files. It reports their number and some keys, and exits with 3. "pawl files
rebuild" writes the missing rows. If you know that the index is right, remove orphans
with --limit. An audit never removes objects with other names.

If a file cannot be checked, the audit continues with the others, reports the number
of failures, and exits with 1.

"pawl files serve" audits an hour after startup and then every day. It removes
orphans that it has reported for 7 days, if there are at most 100 and at most 1 % of
all objects, and logs their keys. A restart begins the 7 days again.`,
		Example: `  pawl files audit --dry-run
  pawl files audit --limit 5000 --json`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("limit") && o.Limit <= 0 {
				return app.Usage("--limit %d: want a number above 0", o.Limit)
			}
			return runAudit(cmd.Context(), a, o)
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "report differences without writing")
	cmd.Flags().Int64Var(&o.Limit, "limit", 0, "remove orphans if there are at most this `number` (default: keep them)")
	app.DocumentExitCodes(cmd, app.ExitCodes+"  3  index and bucket differed: see the report\n")
	return cmd
}

func runAudit(ctx context.Context, a *app.App, o files.AuditOptions) error {
	return withServer(ctx, a, false, func(ctx context.Context, x *tools) error {
		count := app.NewCounter(x.Log, x.bar)
		o.Progress = func(r *files.AuditReport) { count.Show(r.Objects, "rows", r.Rows, "found", r.Differences()) }
		began := time.Now()
		r, err := x.server.Audit(ctx, o)
		x.bar.End()
		if printErr := printAudit(a, &r, o, time.Since(began), err == nil); printErr != nil {
			return errors.Join(err, printErr)
		}
		if err == nil && r.Differences() > 0 {
			return app.Found()
		}
		return err
	})
}

type tools struct {
	*app.Runtime
	server *server.Server
	bar    *app.Progress
}

func withServer(ctx context.Context, a *app.App, create bool, do func(context.Context, *tools) error) (err error) {
	bar := a.NewProgress()
	log, err := a.Logger(bar, bar.LogLevel())
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal(ctx, log)
	defer stop()
	m, err := a.Configure(ctx, a.Parts.LoadWithoutSources, log)
	if err != nil {
		return err
	}
	c, err := serverConfig(m)
	if err != nil {
		return err
	}
	if err := m.Objects.Check(ctx, c.Bucket); err != nil {
		return err
	}
	if c.Index, err = openIndex(ctx, m, create); err != nil {
		return m.Config.At("files.index", err)
	}
	defer func() { err = errors.Join(err, c.Index.Close()) }()
	s, err := server.New(c)
	if err != nil {
		return m.Config.At("files", err)
	}
	return do(ctx, &tools{m, s, bar})
}

type auditJSON struct {
	files.AuditReport
	Complete bool    `json:"complete"`
	DryRun   bool    `json:"dry_run"`
	Seconds  float64 `json:"seconds"`
}

func printAudit(a *app.App, r *files.AuditReport, o files.AuditOptions, took time.Duration, complete bool) error {
	took = took.Round(time.Millisecond)
	if a.JSON {
		return a.PrintJSON(auditJSON{*r, complete, o.DryRun, took.Seconds()})
	}
	_, err := fmt.Fprint(a.Out, auditText(r, o, took, complete))
	return err
}

func auditText(r *files.AuditReport, o files.AuditOptions, took time.Duration, complete bool) string {
	var text strings.Builder
	what, done := "audited", "removed"
	switch {
	case !complete:
		what = "partly audited"
	case o.DryRun:
		what, done = "audited (dry run)", "would be removed"
	}
	fmt.Fprintf(&text, "%s %s objects and %s rows in %s\n", what, humanize.Comma(r.Objects), humanize.Comma(r.Rows), took)
	for _, state := range slices.Sorted(maps.Keys(r.Moved)) {
		fmt.Fprintf(&text, "  %d files changed to %s\n", r.Moved[state], state)
	}
	if r.Leftovers > 0 {
		fmt.Fprintf(&text, "  %d leftover objects or multipart uploads: %s\n", r.Leftovers, done)
	}
	writeOrphans(&text, r, o)
	if r.Failed > 0 {
		fmt.Fprintf(&text, "  %d files could not be checked: the next audit checks them again\n", r.Failed)
	}
	if r.Foreign > 0 {
		fmt.Fprintf(&text, "  %d other objects, not named like a file: kept\n", r.Foreign)
	}
	return text.String()
}

func writeOrphans(text *strings.Builder, r *files.AuditReport, o files.AuditOptions) {
	if r.Orphans == 0 {
		return
	}
	outcome := "kept"
	switch {
	case r.KeepsOrphans(o), o.Limit == 0:
	case o.DryRun:
		outcome = "would be removed"
	default:
		outcome = fmt.Sprintf("%d removed", r.Removed)
	}
	fmt.Fprintf(text, "  %d orphans (objects or multipart uploads without a row): %s\n", r.Orphans, outcome)
	for _, key := range r.OrphanKeys {
		fmt.Fprintf(text, "    %s\n", event.Quote(key))
	}
	if more := r.Orphans - int64(len(r.OrphanKeys)); more > 0 {
		fmt.Fprintf(text, "    and %d more\n", more)
	}
	if outcome == "kept" {
		fmt.Fprintf(text, "    If the index was restored from a backup, run: pawl files rebuild. If you know that the index is right, run: pawl files audit --limit %d\n", r.Orphans)
	}
}
