package pipelinecmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/dashboard"
	"github.com/pawlhq/pawl/ledger"
)

// maxUnsettled is the number of unsettled rows that status reads for each pipeline.
const maxUnsettled = 10_000

// NewStatusCommand returns the command status.
func NewStatusCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the work that is left in each pipeline, and its last audit",
		Long: `Status prints a line for each pipeline: the rows that are not settled, by state
(see "pawl ls --help"), the event time of the oldest one, and the last audit of all its
keys, with the losses and the dead rows that it found. It reads at most 10,000 rows of each pipeline,
and no settled or dead rows: "pawl ls --count" counts all rows.

With --json each line is one JSON object: pipeline, pending, processing, stuck,
failed, truncated (there are more rows), oldest, audited, lost, dead. Times are RFC
3339. The last three are missing before the first audit.`,
		Example: `  pawl status
  pawl status --json | jq -r 'select(.stuck > 0) | .pipeline'`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), a) },
	}
	addLedgerFlag(a, cmd)
	return cmd
}

func runStatus(ctx context.Context, a *app.App) (err error) {
	v, err := openReadOnly(ctx, a)
	if err != nil {
		return err
	}
	defer v.closeInto(&err)
	all, err := statuses(ctx, v, time.Now(), maxUnsettled)
	if err != nil {
		return err
	}
	if !a.JSON {
		return printStatuses(a, all)
	}
	for i := range all {
		if err := a.PrintJSON(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

// statuses covers the pipelines of the configuration and those that have rows.
func statuses(ctx context.Context, v *ledgerReader, now time.Time, limit int) ([]dashboard.PipelineStatus, error) {
	rows := v.Store.(*ledger.Rows)
	names, err := ledger.Pipelines(ctx, v)
	if err != nil {
		return nil, err
	}
	for _, name := range pipelineNames(v.config) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	reports, err := audit.StoredReports(ctx, rows)
	if err != nil {
		return nil, err
	}
	all := make([]dashboard.PipelineStatus, len(names))
	for i, name := range names {
		u, err := rows.Unsettled(ctx, name, now, limit)
		if err != nil {
			return nil, err
		}
		all[i] = dashboard.PipelineStatus{
			Pipeline: name, Truncated: u.Truncated, Oldest: u.Oldest,
			Pending: u.ByState[ledger.StatePending], Processing: u.ByState[ledger.StateProcessing],
			Stuck: u.ByState[ledger.StateStuck], Failed: u.ByState[ledger.StateFailed],
		}
		addAudit(&all[i], reports)
	}
	return all, nil
}

// addAudit adds the newest of the reports that cover the pipeline. The reports are newest first.
func addAudit(s *dashboard.PipelineStatus, reports []audit.Report) {
	for i := range reports {
		if reports[i].Prefix != "" {
			continue // it did not audit the whole pipeline
		}
		for j := range reports[i].Pipelines {
			if p := &reports[i].Pipelines[j]; p.Name == s.Pipeline {
				lost := p.Lost()
				s.Audited, s.Lost, s.Dead = reports[i].Started, &lost, &p.Dead
				return
			}
		}
	}
}

func printStatuses(a *app.App, all []dashboard.PipelineStatus) error {
	now := time.Now()
	t := app.PlainWriter("PIPELINE", "PENDING", "PROCESSING", "STUCK", "FAILED", "OLDEST", "LAST AUDIT", "LOST", "DEAD")
	for i := range all {
		s := &all[i]
		oldest, audited, lost, dead := "-", "never", "-", "-"
		if !s.Oldest.IsZero() {
			oldest = app.RelativeTime(s.Oldest, now)
		}
		if s.Lost != nil {
			audited, lost, dead = app.RelativeTime(s.Audited, now), fmt.Sprint(*s.Lost), fmt.Sprint(*s.Dead)
		}
		t.AppendRow([]any{app.Printable(s.Pipeline), s.Pending, s.Processing, s.Stuck, s.Failed, oldest, audited, lost, dead})
	}
	_, err := fmt.Fprintln(a.Out, t.Render())
	return err
}
