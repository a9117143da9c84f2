// Package simulatecmd contains the command simulate, which runs worlds of the simulator.
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

// simulateOptions are the flags of simulate.
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
		Short: "Play the protocol in simulated worlds, and check its promise in each",
		Long: `Simulate checks the claim that effects happen once, in order, whatever goes
wrong. One seed is one world. For up to a day a user changes two objects;
notifications are lost, doubled, out of order and up to six hours late; three
workers with wrong clocks crash at any step, or stand still, sleep through their
leases and go on; requests land although nobody hears of it, land minutes late,
twice or in part. Then the troubles end, an operator redrives what died, an
audit looks for what was lost, and the invariants must hold: every output is
that of its input, what was removed stays removed, no version takes effect twice
unless the result of an attempt was unknown or an operator forced it, everything
is settled or dead. Most are watched all the way.

What plays is what ships: the engine, the rules of the ledger's rows, the
attempt, the fenced write, the audit, and what a purge decides.
Simulated are the network, the clocks, the processes, the two stores
and the handlers. Real servers, real kills
and the worker's goroutines are tested elsewhere: docs/CORRECTNESS.md says what
is tested how, and what is not promised.

Every run plays new worlds, unless --seed says which. The same seeds of the same
version are the same worlds on every machine. A world in which an invariant does
not hold ends the run, is shrunk to few choices, and told. --story tells any
world, to see what is played: when, in which process ("-" is none: the user, a
store, an operator), and what.

With --json the report is one JSON object: first_seed, histories, steps,
seconds, setbacks (older results that stood in place of newer ones until a
verification healed them), faults (by step and fault), held, complete; and, if
an invariant did not hold, violated (worlds, by invariant) and failure (seed,
violations, tape, choices, story). That of a story has seed, violations, story.`,
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
	flags.Uint64Var(&o.histories, "histories", 50_000, "play so many `worlds`")
	flags.Uint64Var(&o.seed, "seed", 0, "the first world's `number`; the others follow it (default a random one)")
	flags.BoolVar(&o.trace, "story", false, "play one world, and tell what happens in it")
	flags.StringVar(&o.tape, "tape", "", "play the world of a `tape`, as a failure prints it, and tell what happens in it")
	app.DocumentExitCodes(cmd, `  0  every invariant held in every world
  1  interrupted: the report is of the worlds that were played
  2  wrong usage
  3  an invariant did not hold: the report says which, where and how
`)
	return cmd
}

// maxHistories keeps a typing error from running for ever.
const maxHistories = 1 << 40

// check refuses flags that say nothing together, and draws the seed.
func (o *simulateOptions) check(given func(flag string) bool) error {
	switch {
	case given("tape") && (given("seed") || given("histories") || o.trace):
		return app.Usage("--tape is a world of its own: leave --seed, --histories and --story out")
	case o.trace && given("histories"):
		return app.Usage("--story tells one world: leave --histories out")
	case given("tape") && o.tape == "":
		return app.Usage("--tape is empty: want the tape that a failure printed")
	case o.histories == 0:
		return app.Usage("--histories 0: want at least 1")
	case o.histories > maxHistories:
		return app.Usage("--histories %d: want at most %d, which take a week at the least", o.histories, uint64(maxHistories))
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

// simulate plays the worlds, and shows how far it is where a person watches.
func simulate(ctx context.Context, a *app.App, o *simulateOptions) *sim.Report {
	options := sim.Options{First: o.seed, Histories: o.histories}
	if app.IsTerminal(a.Err) {
		bar := worldsBar(a.Err, int64(o.histories))
		defer func() { _ = bar.Clear() }() // a bar that cannot be drawn harms nothing
		options.Progress = func(played uint64) { _ = bar.Set64(int64(played)) }
	}
	return sim.Run(ctx, options)
}

// worldsBar shows how many worlds are played, and how many a second.
func worldsBar(w io.Writer, worlds int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(worlds, progressbar.OptionSetWriter(w), progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("worlds"),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}
