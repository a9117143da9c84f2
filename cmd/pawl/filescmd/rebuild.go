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
		Long: `Rebuild lists the objects of the files. For each object that has the name of a file
but no row it writes the row: entity, type, size and SHA-256 are those of the
object's metadata. The file is then visible. Quotas do not bound a rebuild.

Files that were deleted since the backup return: their objects look like those of
files that were not deleted. Files that the backup shows as deleted may have been
undeleted since. Their undelete window begins again, so their bytes are not removed
for another day. Run rebuild before "pawl files serve". If there is no index, rebuild
makes one.

If the store accepts forged uploads, as MinIO does, anyone who has seen an upload
URL may have written objects with any metadata, so rebuild refuses. Use
--trust-metadata if no user can send such requests to the store.`,
		Example: `  pawl files rebuild --dry-run
  pawl files rebuild --trust-metadata`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withServer(cmd.Context(), a, !dryRun, func(ctx context.Context, x *tools) error { return runRebuild(ctx, a, x, dryRun, trust) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "report what is missing, and write no row")
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
		return app.Failed(err, "use --trust-metadata if no user can send such requests to the store")
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
		part = " in part"
	}
	fmt.Fprintf(a.Out, "rebuilt%s from %s objects in %s: %s %s\n", part, humanize.Comma(r.Objects), took, humanize.Comma(r.Rebuilt), outcome)
	if r.Kept > 0 {
		fmt.Fprintf(a.Out, "  %d files are deleted, and can be undeleted for another day\n", r.Kept)
	}
	if r.Skipped == 0 {
		return nil
	}
	_, err := fmt.Fprintf(a.Out, "  %d objects show no entity or no SHA-256, and were skipped:\n", r.Skipped)
	for _, key := range r.SkippedKeys {
		fmt.Fprintf(a.Out, "    %s\n", event.Quote(key))
	}
	return err
}
