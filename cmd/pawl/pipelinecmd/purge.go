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
		Short: "Drop the rows of objects that are long gone",
		Long: `Purge drops the rows of removed objects that have been settled for longer than the
configuration's audit.row_retention, 30 days by default. Until then such a row is what an
old notification is recognised by. Leased, failed and dead rows stay, and rows that
are to be verified.

With "purge: settled" in the configuration's audit it drops settled rows of objects
that exist as well. That keeps the ledger small, at a price: what is lost about such
an object later is not found: from then on audits pass over objects without a row
that are older than what was dropped.

It works while workers run. "pawl run" does it after each scheduled audit.`,
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
	flags.BoolVar(&dryRun, "dry-run", false, "only count the rows")
	_ = cmd.RegisterFlagCompletionFunc("pipeline", completePipelines(a))
	return cmd
}

func purgeRows(ctx context.Context, m *app.Runtime, a *app.App, pipelines []string, dryRun bool) error {
	for _, name := range pipelines {
		if !configured(m.Config, name) {
			return app.Usage("--pipeline %q: the configuration does not have it", name)
		}
	}
	m.Parts.Audit.Every = 0 // what only a schedule needs is no concern of this one
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
		text += fmt.Sprintf("; left %d alone, which changed meanwhile", done.Changed)
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}
