package archivecmd

import (
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/demo"
	"github.com/pawlhq/pawl/cmd/pawl/democmd"
)

func newDemoCommand(a *app.App) *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show an archive on this machine, with nothing but this program",
		Long: `Demo starts a stream and an object store in memory, and two worker processes over
one SQLite ledger. It puts records into the stream, and kills a worker while an
object of its is on the way to the store. Another one is started, and what the
dead one has sent arrives long after. Then it proves that each record is stored
exactly once: with "pawl archive verify --deep", and with a reader of its own.

Without --once it then stays up for records of your own, until Ctrl-C.`,
		Example: `  pawl archive demo
  pawl archive demo --once --json`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return democmd.Run(cmd.Context(), a, o, demo.RunArchive) },
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "end after the show: with 0 if all is right, 1 if not")
	app.DocumentExitCodes(cmd, `  0  all is right
  1  not all is right, or the demo could not be shown
  2  wrong usage
`)
	return cmd
}
