package filescmd

import (
	"math/rand/v2"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/demo"
	"github.com/pawlhq/pawl/cmd/pawl/democmd"
)

func newDemoCommand(a *app.App) *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Demonstrate file uploads on this machine",
		Long: `Demo starts an in-memory object store and two processes of "pawl files serve" that
share one SQLite index. Clients upload pictures with signed URLs, delete some and
undelete some. They also send wrong bytes, interrupt uploads and repeat requests.
Notifications are lost, late or duplicated, and one service is killed. An audit finds
the files whose notification was lost. Then the index's timers advance by a day, so
deleted files are removed. Finally, the demo compares the index with the bucket,
file by file.

The seed determines what happens to each file.

Without --once, the demo then serves a web page on which you can upload and delete
your own pictures, until Ctrl-C. Only browsers on this machine can open the page.`,
		Example: `  pawl files demo
  pawl files demo --once --seed 7`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.Seed = rand.Uint64N(app.DemoSeeds)
			}
			return democmd.Run(cmd.Context(), a, o, demo.RunFiles)
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "exit after the checks, with status 0 if they passed and 1 otherwise")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "seed `number` (default: random)")
	app.DocumentExitCodes(cmd, `  0  all checks passed
  1  a check failed, or the demo could not run
  2  wrong usage
`)
	return cmd
}
