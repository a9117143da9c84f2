// Package democmd contains the command demo, which starts the demo of pipelines.
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
	var once bool
	var seed uint64
	var listen string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on this machine, with nothing but this program",
		Long: `Demo starts an object store in memory and two worker processes over one SQLite
ledger. It uploads, overwrites and removes photographs that it draws itself, and
carries the store's notifications to the workers as badly as they can be carried:
some twice, some out of order, some late, some never. It kills a worker in
mid-work and starts another. Then it compares every output with its input.

One seed decides what is uploaded when, and what happens to each notification.

Without --once it then stays up for pictures of your own, until Ctrl-C.`,
		Example: `  pawl demo
  pawl demo --once --seed 7`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				seed = rand.Uint64N(app.Seeds)
			}
			return runDemo(cmd.Context(), a, demo.Options{Once: once, Seed: seed, Listen: listen})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&once, "once", false, "end after the show: with 0 if all is right, 1 if not")
	flags.Uint64Var(&seed, "seed", 0, "play what this `number` stands for (default a random one)")
	flags.StringVar(&listen, "listen", "", "`address` of the object store, on this machine only (default a free port)")
	app.DocumentExitCodes(cmd, `  0  all is right
  1  not all is right, or the demo could not be shown
  2  wrong usage
`)
	return cmd
}

func runDemo(ctx context.Context, a *app.App, o demo.Options) (err error) {
	if err := o.Validate(); err != nil {
		return app.Misconfigured(err)
	}
	if o.Binary, err = app.Self(); err != nil {
		return err
	}
	// With --json standard output is the report's alone.
	out := a.Out
	o.Report = func(r *demo.Report) error { return r.Print(a.Out) }
	if a.JSON {
		out = a.Err
		o.Report = func(r *demo.Report) error { return a.PrintJSON(r) }
	}
	o.Out, o.Terminal = out, app.IsTerminal(out)
	log, err := a.Logger(a.Err, slog.LevelWarn)
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal(ctx, log)
	defer stop()
	return demo.Run(ctx, o)
}
