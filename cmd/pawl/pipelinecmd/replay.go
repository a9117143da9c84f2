package pipelinecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source/replaysource"
)

type replayOptions struct {
	dialect string
	trust   bool
	skipBad bool
}

// NewReplayCommand returns the command replay.
func NewReplayCommand(a *app.App) *cobra.Command {
	o := &replayOptions{}
	cmd := &cobra.Command{
		Use:   "replay [FILE... | -]",
		Short: "Process notifications from files, then exit",
		Long: `Replay reads notifications from files, or from standard input, and runs the
pipelines of the configuration. It exits when every object in the notifications is
settled or dead, even if another process settled it. It does not wait for other
objects in the ledger. It ignores the sources of the configuration, so their
environment variables may be unset.

Files contain a sequence of JSON values, separated by any white space. You can replay
the same file again: replay drops duplicates. It counts, but does not retry, objects
that were dead before and have no newer notification.

With --skip-bad, replay skips JSON values that are not notifications, and lines that
start with invalid JSON or exceed 1 MiB. Invalid JSON in the middle of a line still
ends the replay.`,
		Example: `  pawl replay notifications.ndjson
  zcat log/*.gz | pawl replay --json -
  pawl replay --dialect minio --trust-sequencer events.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return runReplay(cmd.Context(), a, o, args) },
	}
	flags := cmd.Flags()
	addDialectFlag(cmd, &o.dialect)
	flags.BoolVar(&o.trust, "trust-sequencer", false, "trust the sequencers although the dialect does not guarantee their order")
	flags.BoolVar(&o.skipBad, "skip-bad", false, "skip unreadable payloads, and lines that start with invalid JSON")
	app.DocumentExitCodes(cmd, `  0  every object in the notifications is settled
  1  failed or interrupted: completed effects are committed, replay again
  2  invalid usage or configuration: nothing was done
  3  objects became dead in this replay: see "pawl ls --state dead"
`)
	return cmd
}

func addDialectFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "dialect", "auto", "format of the notifications: `dialect`, one of "+strings.Join(dialectNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("dialect", completeDialects) // fails only if the flag is missing
}

func dialectNames() []string {
	names := []string{"auto"}
	for _, d := range event.Dialects {
		names = append(names, string(d))
	}
	return names
}

func completeDialects(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return dialectNames(), cobra.ShellCompDirectiveNoFileComp
}

func checkInputs(a *app.App, name string, paths []string) (event.Dialect, []string, error) {
	dialect, err := event.ParseDialect(name)
	if err != nil {
		return "", nil, app.Usage("--dialect: %w", err)
	}
	if len(paths) == 0 {
		if app.IsTerminal(a.In) {
			return "", nil, app.Usage(`name files with notifications, or "-" for standard input`)
		}
		paths = []string{"-"}
	}
	return dialect, paths, checkFiles(paths)
}

// checkFiles does not open the files, because a pipe can be opened only once.
func checkFiles(paths []string) error {
	for _, path := range paths {
		if path == "-" {
			continue
		}
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			return app.Usage("%s: no such file", event.Quote(path))
		case err == nil && info.IsDir():
			return app.Usage("%s is a folder: name its files", event.Quote(path))
		}
	}
	return nil
}

func runReplay(ctx context.Context, a *app.App, o *replayOptions, paths []string) (err error) {
	dialect, paths, err := checkInputs(a, o.dialect, paths)
	if err != nil {
		return err
	}
	bar := a.NewProgress()
	return a.WithRuntime(ctx, bar, bar.LogLevel(), a.Parts.LoadWithoutSources, false, func(ctx context.Context, m *app.Runtime) error {
		return replayEvents(ctx, m, a, replaysource.Config{
			Paths: paths, Stdin: a.In, Dialect: dialect, TrustSequencer: o.trust, SkipBad: o.skipBad,
			ShutdownTimeout: time.Duration(m.Config.ShutdownTimeout), Logger: m.Log,
		}, bar)
	})
}

func replayEvents(ctx context.Context, m *app.Runtime, a *app.App, c replaysource.Config, bar *app.Progress) error {
	src, err := replaysource.New(c)
	if err != nil {
		return err
	}
	p, err := m.Build(src)
	if err != nil {
		return err
	}
	if err := a.Retry(ctx, 3*time.Second, app.NoAnswer, func() error { return checkBuckets(ctx, m) }); err != nil {
		return err
	}
	proveCopies(ctx, m)
	r := &replay{Runtime: m, src: src, pawl: p, start: time.Now()}
	return r.run(ctx, a, bar)
}

type replay struct {
	*app.Runtime
	src   *replaysource.Source
	pawl  *pawl.Pawl
	start time.Time
}

func (r *replay) run(ctx context.Context, a *app.App, bar *app.Progress) error {
	bar.Begin(r.src.Progress, func(now replaysource.Progress) string {
		s := r.pawl.Stats()
		return fmt.Sprintf("%d events, %d done, %d dead", now.Events, s.Completed+s.NothingToDo, s.Died)
	})
	err := app.WhileRunning(r.pawl.Run(ctx))
	bar.End()
	dead, scanErr := r.countDead(context.WithoutCancel(ctx))
	if scanErr != nil {
		return errors.Join(err, scanErr)
	}
	s := r.sum(dead)
	if err := printSummary(a, s); err != nil {
		return err
	}
	switch {
	case err != nil:
		return err
	case !s.Complete || s.Unsettled > 0:
		return app.Failed(errors.New("the replay was interrupted"), "replay again: duplicates are dropped")
	case s.Dead > 0:
		return app.Found()
	}
	return nil
}

type dead struct {
	Dead       int `json:"dead"`        // died during this replay
	DeadBefore int `json:"dead_before"` // dead before it
}

func (r *replay) countDead(ctx context.Context) (n dead, err error) {
	for i := range r.Parts.Pipelines {
		for row, err := range ledger.NewRows(r.Ledger).Scan(ctx, ledger.Range{Pipeline: r.Parts.Pipelines[i].Name}) {
			switch {
			case err != nil:
				return dead{}, err
			case row.Dead && row.DiedAt().Before(r.start):
				n.DeadBefore++
			case row.Dead:
				n.Dead++
			}
		}
	}
	return n, nil
}

type summary struct {
	replaysource.Progress
	Total            *int64 `json:"total,omitempty"`   // size of the inputs in bytes, if known
	Completed        int64  `json:"completed"`         // committed effects
	AlreadyCommitted int64  `json:"already_committed"` // attempts that found the effect committed
	Failed           int64  `json:"failed_attempts"`   // attempts, including those that a retry followed
	dead
	Unsettled int64 `json:"unsettled"` // objects, if the replay was interrupted
	// NewLedger is the location of a ledger that this replay created.
	NewLedger string  `json:"new_ledger,omitempty"`
	Seconds   float64 `json:"seconds"`
}

func (r *replay) sum(n dead) *summary {
	st, p := r.pawl.Stats(), r.src.Progress()
	s := &summary{
		Progress: p, Completed: st.Completed, AlreadyCommitted: st.NothingToDo, Failed: st.Failed,
		dead: n, Unsettled: st.Unsettled, NewLedger: r.NewLedger, Seconds: time.Since(r.start).Round(time.Millisecond).Seconds(),
	}
	if p.Total >= 0 {
		s.Total = &p.Total
	}
	return s
}

func printSummary(a *app.App, s *summary) error {
	if a.JSON {
		return a.PrintJSON(s)
	}
	v := s.Verdicts
	text := fmt.Sprintf("replayed %d notifications with %d events in %.1f s\n"+
		"  new %d, duplicate %d, stale %d, unmatched %d, not about content %d, skipped %d\n"+
		"  effects %d, already committed %d, failed attempts %d\n",
		s.Payloads, s.Events, s.Seconds, v.Raised, v.Duplicate, v.Stale, v.Unmatched, s.Ignored, s.Skipped,
		s.Completed, s.AlreadyCommitted, s.Failed)
	if s.NewLedger != "" {
		text += fmt.Sprintf("  created a new ledger: %s\n", app.Printable(s.NewLedger))
	}
	if s.Unsettled > 0 {
		text += fmt.Sprintf("  unsettled %d\n", s.Unsettled)
	}
	if s.Dead > 0 {
		text += fmt.Sprintf("  dead %d: pawl ls --state dead\n", s.Dead)
	}
	if s.DeadBefore > 0 {
		text += fmt.Sprintf("  dead before: %d\n", s.DeadBefore)
	}
	_, err := fmt.Fprint(a.Out, text)
	return err
}
