// Package app contains code that all commands share, such as streams, exit codes and the assembly of a
// configuration.
package app

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/event"
)

// Streams are the standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// App holds the streams, the kinds of parts, and the global flags.
type App struct {
	Streams
	Parts      *config.Table
	ConfigFile string
	Ledger     string // --ledger, instead of the configuration file
	ConfigSet  bool   // --config is given
	JSON       bool
	LogLevel   string
	Admin      string // --admin
	Parsed     bool   // the command line is valid
}

// NoArgs rejects arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage("%s takes no arguments: found %s", cmd.CommandPath(), event.Quote(args[0]))
	}
	return nil
}

// SingleArg requires one argument.
func SingleArg(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return Usage("%s takes one argument: want %s", cmd.CommandPath(), cmd.UseLine())
	}
	return nil
}

var invalidFlag = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?--([a-z-]+)" flag: `)

var renamedFlags = map[string]string{"pawl audit --settle": "--settle-window"}

// FlagError rewrites cobra's errors: for an invalid value it names the valid values, and for a renamed flag
// the new name.
func FlagError(cmd *cobra.Command, err error) error {
	old := strings.TrimPrefix(err.Error(), "unknown flag: ")
	if name := renamedFlags[cmd.CommandPath()+" "+old]; name != "" {
		return fmt.Errorf("flag %s was renamed to %s", old, name)
	}
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

// DocumentExitCodes appends text to the help of a command and of its subcommands, except those with exit
// codes of their own.
func DocumentExitCodes(cmd *cobra.Command, text string) {
	cmd.SetUsageTemplate(cmd.UsageTemplate() + "\nExit codes:\n" + text)
}
