// Package app contains what all commands share: streams, exit codes, tables, JSON, progress, confirmation, and a configuration turned into parts.
package app

import (
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/event"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// App is what all commands share: streams, the kinds of parts that a
// configuration may name, and the flags of the root.
type App struct {
	Streams
	Parts      *config.Table
	ConfigFile string
	Ledger     string // that of commands that only look, instead of a configuration's
	ConfigSet  bool   // the configuration file was, on the command line
	JSON       bool
	LogLevel   string
	Parsed     bool // the command line was understood
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage("%s takes no arguments: found %s", cmd.CommandPath(), event.Quote(args[0]))
	}
	return nil
}

// SingleArg wants one argument.
func SingleArg(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return Usage("%s takes one argument: want %s", cmd.CommandPath(), cmd.UseLine())
	}
	return nil
}

// invalidFlag matches cobra's error for an invalid flag value, which quotes package strconv.
var invalidFlag = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?--([a-z-]+)" flag: `)

// FlagError replaces cobra's error for an invalid flag value by one that names valid values.
func FlagError(cmd *cobra.Command, err error) error {
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

// DocumentExitCodes puts the exit codes at the end of a command's help, and of
// its subcommands' where they have none of their own.
func DocumentExitCodes(cmd *cobra.Command, text string) {
	cmd.SetUsageTemplate(cmd.UsageTemplate() + "\nExit codes:\n" + text)
}
