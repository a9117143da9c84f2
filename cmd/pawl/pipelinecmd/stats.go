package pipelinecmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/notificationstats"
	"github.com/pawlhq/pawl/source/replaysource"
)

// statsOptions are the flags of stats.
type statsOptions struct {
	dialect string
	plot    string
}

// NewStatsCommand returns the command stats.
func NewStatsCommand(a *app.App) *cobra.Command {
	o := &statsOptions{}
	cmd := &cobra.Command{
		Use:   "stats [FILE... | -]",
		Short: "Measure copies, lateness and order of captured notifications",
		Long: `Stats reads notifications from files, or from standard input, and reports how the
store delivered them: how many changes have one, two or more notifications, the
time between the first notification and each copy, the lateness of the first one,
and how many arrived after one of a newer change of the same object. It needs no
configuration, and changes nothing.

Files are those of "pawl replay": a sequence of JSON values, separated by any white
space. To measure times, add a member "received_at" to each value: its arrival time,
in RFC 3339 or in seconds since 1970. Without it, the order of the input is the order
of arrival, and the report has no times.

Two notifications are copies if they report the same change of the same object: the
same kind, version and sequencer. If the dialect has no reliable sequencers, the time,
ETag and size must be equal as well.

The figures are exact. Stats needs at most 200 MB of memory, and about 70 bytes for
each notification in the folder for temporary files (TMPDIR). It skips unreadable
notifications, counts them, and logs the first 100. With --json, the report is one
JSON object, with histograms of the times.`,
		Example: `  pawl stats notifications.ndjson
  zcat log/*.gz | pawl stats --json -
  pawl stats --plot copies.svg notifications.ndjson`,
		RunE: func(cmd *cobra.Command, args []string) error { return runStats(cmd.Context(), a, o, args) },
	}
	addDialectFlag(cmd, &o.dialect)
	cmd.Flags().StringVar(&o.plot, "plot", "", "write a histogram of the times between notification and copy to this SVG `file`")
	app.DocumentExitCodes(cmd, app.ExitCodes+`  3  some notifications are unreadable: the report covers the others
`)
	return cmd
}

// statsReport is the report in JSON.
type statsReport struct {
	Messages   int64 `json:"messages"`   // JSON values with notifications
	Ignored    int64 `json:"ignored"`    // records that do not change content
	Unreadable int64 `json:"unreadable"` // JSON values and lines
	*notificationstats.Report
}

func runStats(ctx context.Context, a *app.App, o *statsOptions, paths []string) error {
	dialect, paths, err := checkInputs(a, o.dialect, paths)
	if err != nil {
		return err
	}
	bar := a.NewProgress()
	log, err := a.Logger(bar, bar.LogLevel())
	if err != nil {
		return err
	}
	src, err := replaysource.New(replaysource.Config{Paths: paths, Stdin: a.In, Dialect: dialect, SkipBad: true, Logger: log})
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal(ctx, log)
	defer stop()
	bar.Begin(src.Progress, func(now replaysource.Progress) string { return fmt.Sprintf("%d notifications", now.Events) })
	report, err := measure(ctx, src)
	bar.End()
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted: there is no report")
	case err != nil:
		return err
	}
	p := src.Progress()
	s := &statsReport{p.Payloads, p.Ignored, p.Skipped, report}
	if err := s.print(a); err != nil {
		return err
	}
	if o.plot != "" {
		if err := os.WriteFile(o.plot, report.Plot(), 0o600); err != nil {
			return fmt.Errorf("write the plot: %w", err)
		}
	}
	if s.Unreadable > 0 {
		return app.Found()
	}
	return nil
}

func measure(ctx context.Context, src *replaysource.Source) (*notificationstats.Report, error) {
	var c notificationstats.Collector
	defer c.Close()
	err := src.Scan(ctx, func(p replaysource.Payload) error {
		for i := range p.Events {
			if err := c.Add(&p.Events[i], p.Received); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.Report(ctx)
}

func (s *statsReport) print(a *app.App) error {
	if a.JSON {
		return a.PrintJSON(s)
	}
	t := app.PlainWriter("FIGURE", "COUNT")
	row := func(name string, n int64) { t.AppendRow([]any{name, n}) }
	row("messages", s.Messages)
	row("unreadable", s.Unreadable)
	row("not about content", s.Ignored)
	row("notifications", s.Notifications)
	row("objects", s.Objects)
	row("changes", s.Changes)
	for _, n := range slices.Sorted(maps.Keys(s.Deliveries)) {
		row(fmt.Sprintf("  notified %d×", n), s.Deliveries[n])
	}
	row("repeated changes", s.Repeated)
	row("copies", s.Copies)
	row("out of order", s.OutOfOrder)
	text := t.Render() + "\n"
	if s.Intervals != nil || s.Lateness != nil {
		text += "\n" + s.timeTable() + "\n"
	}
	if s.WithoutReceivedAt > 0 {
		text += fmt.Sprintf("\n%d of %d notifications have no arrival time (received_at): no times are known for these.\n", s.WithoutReceivedAt, s.Notifications)
	}
	_, err := fmt.Fprint(a.Out, text)
	return err
}

func (s *statsReport) timeTable() string {
	t := app.PlainWriter("TIME", "COUNT", "MIN", "P50", "P90", "P99", "MAX")
	row := func(name string, d *notificationstats.Distribution) {
		if d != nil {
			t.AppendRow([]any{name, d.Count, d.Min, d.P50, d.P90, d.P99, d.Max})
		}
	}
	row("notification to copy", s.Intervals)
	row("change to notification", s.Lateness)
	return t.Render()
}
