// Package cli is the pawl command: one file per command, and what they share.
package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs the command that args name and returns the process's exit code. An
// error is printed once, to Err.
func Main(ctx context.Context, args []string, s Streams) int {
	return run(ctx, &app{Streams: s, parts: parts.Table}, args)
}

// run runs the command that args name.
func run(ctx context.Context, a *app, args []string) int {
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	f := classify(err, a.started)
	a.printFailure(f, args)
	return f.code
}

// app is what all commands share: streams, the kinds of parts that a
// configuration may name, and the flags of the root.
type app struct {
	Streams
	parts      *config.Table
	configFile string
	ledger     string // that of commands that only look, instead of a configuration's
	named      bool   // the configuration file was, on the command line
	json       bool
	logLevel   string
	started    bool // the command line was understood
}

func newRootCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pawl",
		Short: "Notifications of an object store in; effects once, in order, out",
		Long: `Pawl turns the change notifications of an object store (S3, MinIO, R2, …) into
effects that happen once, in order, one at a time per object.

"pawl run" does the work. The ledger is where Pawl remembers what it has heard of
each object and what it has done: ls, explain and redrive look into it. Locks and
safe updates (lock, update) need neither, only a bucket.`,
		Example: `  pawl run -c pawl.yaml
  pawl ls --state dead,failed
  pawl explain s3://photos/in/cat.jpg`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			a.started = true
			a.named = cmd.Flags().Changed("config")
		},
	}
	flags := cmd.PersistentFlags()
	flags.StringVarP(&a.configFile, "config", "c", "pawl.yaml", "configuration `file`")
	flags.BoolVar(&a.json, "json", false, "print JSON; errors too, on standard error")
	flags.StringVar(&a.logLevel, "log-level", "", "`level` of the log: debug, info, warn or error (default info)")
	cmd.AddCommand(newDemoCommand(a), newRunCommand(a), newReplayCommand(a), newLsCommand(a), newExplainCommand(a),
		newRedriveCommand(a), newPurgeCommand(a), newAuditCommand(a), newSimulateCommand(a), newDoctorCommand(a), newArchiveCommand(a), newFilesCommand(a), newLedgerCommand(a), newLockCommand(a), newUpdateCommand(a),
		newVersionCommand(a))
	cmd.AddCommand(guardCommands(a)...)
	documentExitCodes(cmd, exitCodes)
	refuseUnknownShells(cmd)
	refuseUnknownTopics(cmd)
	cmd.SetFlagErrorFunc(flagError)
	return cmd
}

// refuseUnknownTopics makes "pawl help TOPIC" wrong usage for a topic that is not
// known. Cobra's own command shows the usage of pawl then, and succeeds.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Run = nil
			cmd.RunE = func(_ *cobra.Command, args []string) error {
				topic, _, err := root.Find(args)
				if err != nil {
					return &failure{exitUsage, err, `"pawl --help" shows what there is`}
				}
				return topic.Help()
			}
		}
	}
}

// refuseUnknownShells makes "pawl completion SHELL" wrong usage for a shell that
// is not known. Cobra's own command shows its help then, and succeeds.
func refuseUnknownShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments: found %s", cmd.CommandPath(), event.Quote(args[0]))
	}
	return nil
}

// singleArg wants one argument.
func singleArg(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("%s takes one argument: want %s", cmd.CommandPath(), cmd.UseLine())
	}
	return nil
}

// invalidFlag is what cobra says of a flag's value: in the words of package strconv.
var invalidFlag = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?--([a-z-]+)" flag: `)

// flagError says what a flag's value should be.
func flagError(cmd *cobra.Command, err error) error {
	m := invalidFlag.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	f := cmd.Flag(m[2])
	want, known := map[string]string{
		"bool": "true or false", "duration": "a duration, like 30s, 5m or 12h", "int": "a whole number",
		"int64": "a whole number", "uint64": "a whole number, 0 or more",
	}[f.Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %s: want %s", m[2], m[1], want)
}

// documentExitCodes puts the exit codes at the end of a command's help, and of
// its subcommands' where they have none of their own.
func documentExitCodes(cmd *cobra.Command, text string) {
	cmd.SetUsageTemplate(cmd.UsageTemplate() + "\nExit codes:\n" + text)
}
