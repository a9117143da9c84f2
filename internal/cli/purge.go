package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
)

func newPurgeCommand(a *app) *cobra.Command {
	var pipelines []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Drop the rows of objects that are long gone",
		Long: `Purge drops the rows of removed objects that have been settled for longer than the
configuration's audit.retain, 30 days by default. Until then such a row is what an
old notification is recognised by. Leased, failed and dead rows stay, and rows that
are to be verified.

With "purge: settled" in the configuration's audit it drops settled rows of objects
that exist as well. That keeps the ledger small, at a price: what is lost about such
an object later is not found: from then on audits pass over objects without a row
that are older than what was dropped.

It works while workers run. "pawl run" does it after each scheduled audit.`,
		Example: `  pawl purge --dry-run
  pawl purge --pipeline grayscale`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMachine(cmd.Context(), a.Err, slog.LevelWarn, a.parts.LoadWithoutSources, dryRun, func(ctx context.Context, m *machine) error {
				return m.purge(ctx, a, pipelines, dryRun)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&pipelines, "pipeline", nil, "only these `pipelines`, separated by commas")
	flags.BoolVar(&dryRun, "dry-run", false, "only count the rows")
	_ = cmd.RegisterFlagCompletionFunc("pipeline", a.completePipelines)
	return cmd
}

func (m *machine) purge(ctx context.Context, a *app, pipelines []string, dryRun bool) error {
	for _, name := range pipelines {
		if !configured(m.config, name) {
			return usage("--pipeline %q: the configuration does not have it", name)
		}
	}
	m.parts.Audit.Every = 0 // what only a schedule needs is no concern of this one
	p, err := m.build()
	if err != nil {
		return err
	}
	done, err := p.Purge(ctx, pipelines, dryRun, nil)
	return errors.Join(err, a.printPurged(done, dryRun))
}

func (a *app) printPurged(done pawl.Purged, dryRun bool) error {
	if a.json {
		return a.printJSON(done)
	}
	did := "dropped"
	if dryRun {
		did = "would drop"
	}
	text := fmt.Sprintf("%s %s of %d", did, english.Plural(done.Dropped, "row", ""), done.Looked)
	if done.Changed > 0 {
		text += fmt.Sprintf("; left %d alone, which changed meanwhile", done.Changed)
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}
