// Package democmd contains the command demo, and code that the commands of all demos share.
package democmd

import (
	"context"
	"log/slog"
	"math/rand/v2"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/demo"
)

// NewDemoCommand returns the command demo.
func NewDemoCommand(a *app.App) *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run pipelines on this machine, with faults, and check the outputs",
		Long: `Demo starts an object store in memory and two worker processes that share one
SQLite ledger. It draws photographs, and uploads, overwrites and removes them. It
delivers the store's notifications to the workers with faults: some twice, some out
of order, some late, some never. It kills a worker in mid-work and starts another.
Then it compares every output with its input.

The seed determines the uploads, their times, and the faults of the notifications.

Without --once, the demo then keeps running for your own pictures, until Ctrl-C.`,
		Example: `  pawl demo
  pawl demo --once --seed 7`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.Seed = rand.Uint64N(app.DemoSeeds)
			}
			return Run(cmd.Context(), a, o, demo.Run)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Once, "once", false, "exit after the checks, with 0 if all checks passed and 1 otherwise")
	flags.Uint64Var(&o.Seed, "seed", 0, "`number` that determines the changes and the faults (default random)")
	flags.StringVar(&o.Listen, "listen", "", "`address` of the object store, on this machine only (default a free port)")
	app.DocumentExitCodes(cmd, `  0  all checks passed
  1  a check failed, or the demo could not run
  2  wrong usage
`)
	return cmd
}

// Run runs a demo, and prints its report.
func Run(ctx context.Context, a *app.App, o demo.Options, run func(context.Context, demo.Options) error) (err error) {
	if err := o.Validate(); err != nil {
		return app.Misconfigured(err)
	}
	if o.Binary, err = app.Executable(); err != nil {
		return err
	}
	// With --json, standard output contains only the report.
	o.Out, o.Report = a.Out, func(r demo.Report) error { return r.Print(a.Out) }
	if a.JSON {
		o.Out, o.Report = a.Err, func(r demo.Report) error { return a.PrintJSON(r) }
	}
	o.Terminal = app.IsTerminal(o.Out)
	log, err := a.Logger(a.Err, slog.LevelWarn)
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal(ctx, log)
	defer stop()
	return run(ctx, o)
}
