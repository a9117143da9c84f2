// Package root contains the tree of commands and the scripts that test the whole program.
package root

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/archivecmd"
	"github.com/pawlhq/pawl/cmd/pawl/democmd"
	"github.com/pawlhq/pawl/cmd/pawl/doctorcmd"
	"github.com/pawlhq/pawl/cmd/pawl/filescmd"
	"github.com/pawlhq/pawl/cmd/pawl/lockcmd"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/cmd/pawl/pipelinecmd"
	"github.com/pawlhq/pawl/cmd/pawl/simulatecmd"
)

// Main runs the command in args and returns its exit code. It prints errors to s.Err.
func Main(ctx context.Context, args []string, s app.Streams) int {
	return run(ctx, &app.App{Streams: s, Parts: parts.Table}, args)
}

func run(ctx context.Context, a *app.App, args []string) int {
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return app.ExitDone
	}
	f := app.Classify(err, a.Parsed)
	a.PrintFailure(f, args)
	return f.Code
}

func newRootCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pawl",
		Short: "Turn notifications of an object store into effects: once, in order",
		Long: `Pawl turns the change notifications of an object store (S3, MinIO, R2, …) into
effects that happen once, in order, one at a time per object.

"pawl run" runs the pipelines. Pawl records the newest version and the committed
effect of each object in the ledger, which ls, explain and redrive read. Locks and
atomic updates (lock, update) need only a bucket.`,
		Example: `  pawl run -c pawl.yaml
  pawl ls --state dead,failed
  pawl explain s3://photos/in/cat.jpg`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			a.Parsed = true
			a.ConfigSet = cmd.Flags().Changed("config")
		},
	}
	flags := cmd.PersistentFlags()
	flags.StringVarP(&a.ConfigFile, "config", "c", "pawl.yaml", "configuration `file`")
	flags.BoolVar(&a.JSON, "json", false, "print JSON, and print errors as JSON on standard error")
	flags.StringVar(&a.LogLevel, "log-level", "", "`level` of the log: debug, info, warn or error (default info)")
	cmd.AddCommand(democmd.NewDemoCommand(a), pipelinecmd.NewRunCommand(a), pipelinecmd.NewReplayCommand(a), pipelinecmd.NewStatusCommand(a), pipelinecmd.NewLsCommand(a), pipelinecmd.NewExplainCommand(a),
		pipelinecmd.NewRedriveCommand(a), pipelinecmd.NewPurgeCommand(a), pipelinecmd.NewAuditCommand(a), pipelinecmd.NewStatsCommand(a), simulatecmd.NewSimulateCommand(a), doctorcmd.NewDoctorCommand(a), archivecmd.NewArchiveCommand(a), filescmd.NewFilesCommand(a), pipelinecmd.NewLedgerCommand(a), pipelinecmd.NewCheckCommand(a), lockcmd.NewLockCommand(a), lockcmd.NewUpdateCommand(a),
		app.NewVersionCommand(a))
	cmd.AddCommand(lockcmd.GuardCommands(a)...)
	app.DocumentExitCodes(cmd, app.ExitCodes)
	refuseUnknownShells(cmd)
	refuseUnknownTopics(cmd)
	cmd.SetFlagErrorFunc(app.FlagError)
	return cmd
}

// Cobra's help command prints the usage of pawl for an unknown topic, and succeeds.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Run = nil
			cmd.RunE = func(_ *cobra.Command, args []string) error {
				topic, _, err := root.Find(args)
				if err != nil {
					return &app.Failure{Code: app.ExitUsage, Err: err, Hint: `"pawl --help" lists the commands`}
				}
				return topic.Help()
			}
		}
	}
}

// Cobra's completion command prints its help for an unknown shell, and succeeds.
func refuseUnknownShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
