package filescmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
)

func newRebuildCommand(a *app.App) *cobra.Command {
	var dryRun, trust bool
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Write the missing rows of an index that was restored from a backup",
		Long: `Rebuild lists the bucket. For each object that is named like a file but has no row, it
writes the row, with the entity, type, size and SHA-256 in the object's metadata. The
file is then visible. Rebuild ignores quotas.

Files that were deleted after the backup become visible again, because nothing in the
bucket shows that they were deleted. Files that are deleted in the backup may have been
undeleted later, so their undelete window starts again: they are kept for another day.
Run rebuild before "pawl files serve". If the index does not exist, rebuild creates it.

If the store accepts forged uploads, as MinIO does, anyone who has seen an upload URL
may have written objects with any metadata, so rebuild refuses to run. Use
--trust-metadata if users cannot send such requests to the store.`,
		Example: `  pawl files rebuild --dry-run
  pawl files rebuild --trust-metadata`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withServer(cmd.Context(), a, !dryRun, func(ctx context.Context, x *tools) error { return runRebuild(ctx, a, x, dryRun, trust) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "report missing rows without writing")
	cmd.Flags().BoolVar(&trust, "trust-metadata", false, "rebuild although the store accepts forged uploads")
	app.DocumentExitCodes(cmd, app.ExitCodes)
	return cmd
}

func runRebuild(ctx context.Context, a *app.App, x *tools, dryRun, trust bool) error {
	count := app.NewCounter(x.Log, x.bar)
	began := time.Now()
	r, err := x.server.Rebuild(ctx, files.RebuildOptions{
		DryRun: dryRun, Progress: func(r *files.RebuildReport) { count.Show(r.Objects, "rebuilt", r.Rebuilt) },
	}, trust)
	if errors.Is(err, s3objects.ErrForgeable) {
		return app.Failed(err, "use --trust-metadata if users cannot send such requests to the store")
	}
	x.bar.End()
	return errors.Join(err, printRebuild(a, &r, dryRun, time.Since(began).Round(time.Millisecond), err == nil))
}

func printRebuild(a *app.App, r *files.RebuildReport, dryRun bool, took time.Duration, complete bool) error {
	if a.JSON {
		return a.PrintJSON(struct {
			*files.RebuildReport
			Complete bool    `json:"complete"`
			DryRun   bool    `json:"dry_run"`
			Seconds  float64 `json:"seconds"`
		}{r, complete, dryRun, took.Seconds()})
	}
	outcome := "rows written"
	if dryRun {
		outcome = "rows missing"
	}
	part := ""
	if !complete {
		part = " partly"
	}
	fmt.Fprintf(a.Out, "rebuilt%s from %s objects in %s: %s %s\n", part, humanize.Comma(r.Objects), took, humanize.Comma(r.Rebuilt), outcome)
	if r.Kept > 0 {
		fmt.Fprintf(a.Out, "  %d files are deleted, and can be undeleted for another day\n", r.Kept)
	}
	if r.Skipped == 0 {
		return nil
	}
	_, err := fmt.Fprintf(a.Out, "  %d objects skipped, because their metadata has no entity or no SHA-256:\n", r.Skipped)
	for _, key := range r.SkippedKeys {
		fmt.Fprintf(a.Out, "    %s\n", event.Quote(key))
	}
	return err
}
