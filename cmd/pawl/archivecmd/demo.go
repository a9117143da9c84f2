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
		Short: "Run a demo of an archive on this machine",
		Long: `Demo starts a stream and an object store in memory, and two worker processes with one
SQLite ledger. It puts records into the stream and kills a worker during the upload of
an object. A new worker replaces it, and the upload of the killed worker arrives much
later. Demo then proves that each record is stored exactly once: with
"pawl archive verify --deep", and with a separate reader.

Without --once, the demo then keeps running until Ctrl-C, so that you can put your own
records.`,
		Example: `  pawl archive demo
  pawl archive demo --once --json`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return democmd.Run(cmd.Context(), a, o, demo.RunArchive) },
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "exit after the demo, with 0 if all checks passed")
	app.DocumentExitCodes(cmd, `  0  all checks passed
  1  a check failed, or the demo could not run
  2  wrong usage
`)
	return cmd
}
