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

// replayOptions are the flags of replay.
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
		Short: "Take notifications from files, do the work, and end",
		Long: `Replay takes notifications from files, or from standard input, does what the
pipelines of the configuration say, and ends when every object that they name is
settled or dead, be it by another process. What else the ledger holds is not
waited for. The sources of the configuration are not used, and not looked at:
their variables need not be set.

Files hold JSON values one after the other: one on each line, or any other way.
Replaying what was replayed before does no harm. An object that was dead before,
and of which the files tell nothing new, is counted and left alone.

With --skip-bad, JSON that is no notification is passed over, and so is a line
that begins with what is not JSON or is larger than 1 MiB. What is not JSON and
does not begin a line ends the replay even so.`,
		Example: `  pawl replay notifications.ndjson
  zcat log/*.gz | pawl replay --json -
  pawl replay --dialect minio --trust-sequencer events.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return runReplay(cmd.Context(), a, o, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.dialect, "dialect", "auto", "how the store wrote the notifications: `dialect`, one of "+strings.Join(dialectNames(), ", "))
	flags.BoolVar(&o.trust, "trust-sequencer", false, "believe the order that the store claims although its dialect gives no guarantee")
	flags.BoolVar(&o.skipBad, "skip-bad", false, "pass over payloads that cannot be read, and lines that begin with what is not JSON")
	_ = cmd.RegisterFlagCompletionFunc("dialect", completeDialects) // fails only for a flag that is not there
	app.DocumentExitCodes(cmd, `  0  every object that the notifications name is settled
  1  something went wrong, or the replay was interrupted: what was done is done,
     replay again
  2  wrong usage or configuration: nothing was done
  3  objects died in this replay: "pawl ls --state dead" names all that are dead
`)
	return cmd
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

// checkFiles refuses what cannot be a file of notifications. It opens nothing: a
// pipe can be opened only once.
func checkFiles(paths []string) error {
	for _, path := range paths {
		if path == "-" {
			continue
		}
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			return app.Usage("%s: no such file", event.Quote(path))
		case err == nil && info.IsDir():
			return app.Usage("%s is a folder: name the files in it", event.Quote(path))
		}
	}
	return nil
}

func runReplay(ctx context.Context, a *app.App, o *replayOptions, paths []string) (err error) {
	dialect, err := event.ParseDialect(o.dialect)
	if err != nil {
		return app.Usage("--dialect: %w", err)
	}
	if len(paths) == 0 {
		if app.IsTerminal(a.In) {
			return app.Usage(`name files to replay, or "-" for standard input`)
		}
		paths = []string{"-"}
	}
	if err := checkFiles(paths); err != nil {
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

// replay is a replay under way.
type replay struct {
	*app.Runtime
	src   *replaysource.Source
	pawl  *pawl.Pawl
	start time.Time
}

func (r *replay) run(ctx context.Context, a *app.App, bar *app.Progress) error {
	bar.Begin(r.src.Progress, r.pawl.Stats)
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
		return app.Failed(errors.New("the replay was interrupted"), "replay again: events that the ledger knows already have no effect")
	case s.Dead > 0:
		return app.Found()
	}
	return nil
}

// dead counts the pipelines' rows that are dead at the end.
type dead struct {
	Dead       int `json:"dead"`        // objects that died in this replay
	DeadBefore int `json:"dead_before"` // and those that had died before it
}

// countDead looks at all rows.
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

// summary is what a replay did.
type summary struct {
	replaysource.Progress
	Total            *int64 `json:"total,omitempty"` // bytes there are, if the inputs say
	Completed        int64  `json:"completed"`       // effects
	AlreadyCommitted int64  `json:"nothing_to_do"`   // attempts that found the effect committed
	Failed           int64  `json:"failed_attempts"` // some of which succeeded later
	dead
	Unsettled int64 `json:"unsettled"` // objects of the notifications; only after an interruption
	// NewLedger is where the ledger is, if it was not there before.
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
		"  news %d, duplicate %d, stale %d, for no pipeline %d, not about content %d, skipped %d\n"+
		"  effects %d, nothing to do %d, failed attempts %d\n",
		s.Payloads, s.Events, s.Seconds, v.Raised, v.Duplicate, v.Stale, v.Unmatched, s.Ignored, s.Skipped,
		s.Completed, s.AlreadyCommitted, s.Failed)
	if s.NewLedger != "" {
		text += fmt.Sprintf("  in a new ledger: %s\n", app.Printable(s.NewLedger))
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
