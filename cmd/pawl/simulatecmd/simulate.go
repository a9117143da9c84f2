// Package simulatecmd contains the command simulate, which runs simulated worlds.
package simulatecmd

import (
	"context"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/proof/sim"
)

type simulateOptions struct {
	histories uint64
	seed      uint64
	trace     bool
	tape      string
}

// NewSimulateCommand returns the command simulate.
func NewSimulateCommand(a *app.App) *cobra.Command {
	o := &simulateOptions{}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Run the protocol in simulated worlds and check its invariants",
		Long: `Simulate tests that effects happen once and in order under random faults. Each
seed is one world. For up to a day, a user changes two objects. Notifications
are lost, repeated, reordered and up to six hours late. Three workers with wrong
clocks crash at any step, or freeze, sleep past their leases and continue.
Requests land without an answer, minutes late, twice or in part. Then the faults
stop, an operator redrives dead rows, an audit finds lost notifications, and the
invariants must hold: every output matches its input, removed objects stay
removed, no version takes effect twice unless the result of an attempt was
unknown or an operator forced it, and everything is settled or dead. Most
invariants are checked at every step.

The engine, the transitions of rows, the attempt, the fenced write, the audit
and the decision of a purge are the shipped code. The network, the clocks, the
processes, the two stores and the handlers are simulated. Other tests cover real
servers, real kills and the worker's goroutines: see docs/CORRECTNESS.md.

Every run uses new seeds unless you set --seed. With the same version, the same
seeds produce the same worlds on every machine. If a world violates an
invariant, the run stops, shrinks the world to a few choices, and prints it.
--story prints any world. Each line has the time, the process ("-" for the user,
a store or an operator), and the event.

With --json, the report is one JSON object: first_seed, histories, steps,
seconds, setbacks (older results that replaced newer ones until a verification
repaired them), faults (by step and fault), held, complete; and, if an invariant
was violated, violated (worlds per invariant) and failure (seed, violations,
tape, choices, story). With --story, the object has seed, violations and story.`,
		Example: `  pawl simulate
  pawl simulate --seed 7 --histories 1000000
  pawl simulate --seed 7 --story`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return runSimulate(cmd.Context(), a, o)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&o.histories, "histories", 50_000, "number of `worlds` to run")
	flags.Uint64Var(&o.seed, "seed", 0, "`number` of the first world; the others follow it (default random)")
	flags.BoolVar(&o.trace, "story", false, "run one world and print its events")
	flags.StringVar(&o.tape, "tape", "", "run the world of a `tape` that a failure printed, and print its events")
	app.DocumentExitCodes(cmd, `  0  every invariant held in every world
  1  interrupted: the report covers the finished worlds
  2  wrong usage
  3  an invariant was violated: see the report
`)
	return cmd
}

// maxHistories worlds take at least a week, so a larger number is probably a typing error.
const maxHistories = 1 << 40

func (o *simulateOptions) check(given func(flag string) bool) error {
	switch {
	case given("tape") && (given("seed") || given("histories") || o.trace):
		return app.Usage("--tape selects one world: remove --seed, --histories and --story")
	case o.trace && given("histories"):
		return app.Usage("--story prints one world: remove --histories")
	case given("tape") && o.tape == "":
		return app.Usage("--tape is empty: want the tape that a failure printed")
	case o.histories == 0:
		return app.Usage("--histories 0: want at least 1")
	case o.histories > maxHistories:
		return app.Usage("--histories %d: want at most %d", o.histories, uint64(maxHistories))
	case o.seed > math.MaxUint64-maxHistories:
		return app.Usage("--seed %d: want at most %d", o.seed, uint64(math.MaxUint64-maxHistories))
	case !given("seed"):
		o.seed = rand.Uint64N(1 << 40)
	}
	return nil
}

func runSimulate(ctx context.Context, a *app.App, o *simulateOptions) error {
	log, err := a.Logger(a.Err, slog.LevelWarn)
	if err != nil {
		return err
	}
	if o.tape != "" {
		violations, story, err := sim.Replay(o.tape)
		if err != nil {
			return app.Usage("--tape: %w", err)
		}
		return printWorld(a, &worldReport{Violations: violations, Trace: story})
	}
	if o.trace {
		violations, story := sim.TraceSeed(o.seed)
		return printWorld(a, &worldReport{Seed: &o.seed, Violations: violations, Trace: story})
	}
	ctx, stop := app.UntilSignal(ctx, log)
	defer stop()
	return printSimulation(a, simulate(ctx, a, o), o.histories)
}

func simulate(ctx context.Context, a *app.App, o *simulateOptions) *sim.Report {
	options := sim.Options{First: o.seed, Histories: o.histories}
	if app.IsTerminal(a.Err) {
		bar := worldsBar(a.Err, int64(o.histories))
		defer func() { _ = bar.Clear() }()
		options.Progress = func(played uint64) { _ = bar.Set64(int64(played)) }
	}
	return sim.Run(ctx, options)
}

func worldsBar(w io.Writer, worlds int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(worlds, progressbar.OptionSetWriter(w), progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("worlds"),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}
