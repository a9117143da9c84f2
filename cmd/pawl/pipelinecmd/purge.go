package pipelinecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/app"
)

// NewPurgeCommand returns the command purge.
func NewPurgeCommand(a *app.App) *cobra.Command {
	var pipelines []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete the rows of objects that were removed long ago",
		Long: `Purge deletes the rows of removed objects that have been settled for longer than
audit.row_retention in the configuration (default 30 days). Until then the row identifies
old notifications of the object. Rows that are leased, failed, dead, or due for
verification stay.

With audit.purge: settled in the configuration, purge also deletes settled rows of
existing objects. The ledger stays small, but audits cannot find later losses about
these objects. Audits then ignore objects without a row that are older than the
purge watermark.

You can purge while workers run. "pawl run" purges after each scheduled audit.`,
		Example: `  pawl purge --dry-run
  pawl purge --pipeline grayscale`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithRuntime(cmd.Context(), a.Err, slog.LevelWarn, a.Parts.LoadWithoutSources, dryRun, func(ctx context.Context, m *app.Runtime) error {
				return purgeRows(ctx, m, a, pipelines, dryRun)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&pipelines, "pipeline", nil, "only these `pipelines`, separated by commas")
	flags.BoolVar(&dryRun, "dry-run", false, "count the rows without deleting them")
	_ = cmd.RegisterFlagCompletionFunc("pipeline", completePipelines(a))
	return cmd
}

func purgeRows(ctx context.Context, m *app.Runtime, a *app.App, pipelines []string, dryRun bool) error {
	for _, name := range pipelines {
		if !configured(m.Config, name) {
			return app.Usage("--pipeline %q: not in the configuration", name)
		}
	}
	m.Parts.Audit.Every = 0 // skip the checks for schedules
	p, err := m.Build()
	if err != nil {
		return err
	}
	done, err := p.Purge(ctx, pipelines, dryRun, nil)
	return errors.Join(err, printPurged(a, done, dryRun))
}

func printPurged(a *app.App, done pawl.Purged, dryRun bool) error {
	if a.JSON {
		return a.PrintJSON(done)
	}
	did := "dropped"
	if dryRun {
		did = "would drop"
	}
	text := fmt.Sprintf("%s %s of %d", did, english.Plural(done.Dropped, "row", ""), done.Examined)
	if done.Changed > 0 {
		text += fmt.Sprintf("; skipped %d, which changed meanwhile", done.Changed)
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}
