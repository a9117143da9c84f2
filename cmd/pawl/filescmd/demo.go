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
		Short: "Show files on this machine, with nothing but this program",
		Long: `Demo starts an object store in memory and two processes of "pawl files serve" over
one SQLite index. Clients upload pictures by signed URLs, delete some and bring
some back. They send wrong bytes, break off, and ask twice; notifications are
lost, late or come twice; and a service is killed. What was lost is found by an
audit. A day passes, by the index: what was deleted is removed. Then index and
bucket are compared, file by file.

One seed decides what happens to which file.

Without --once it then stays up and serves a page on which you can upload and
delete pictures of your own, until Ctrl-C. The page is for browsers on this
machine only.`,
		Example: `  pawl files demo
  pawl files demo --once --seed 7`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.Seed = rand.Uint64N(app.DemoSeeds)
			}
			return democmd.Show(cmd.Context(), a, o, demo.RunFiles)
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "end after the show: with 0 if all is right, 1 if not")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "play what this `number` stands for (default a random one)")
	app.DocumentExitCodes(cmd, `  0  all is right
  1  not all is right, or the demo could not be shown
  2  wrong usage
`)
	return cmd
}
