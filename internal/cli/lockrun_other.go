//go:build !unix

package cli

import (
	"context"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/event"
)

// forwarded are the signals that end what runs.
var forwarded = []os.Signal{os.Interrupt}

// runLock refuses: without process groups nothing would end the command, and all
// that it has started, when the lock is lost.
func runLock(context.Context, *app, event.Object, []string, *lockOptions) error {
	return misuse("pawl lock cannot run commands on %s: it could not end them when the lock is lost; use package lock of the library, or WSL", runtime.GOOS)
}

func guardCommands(*app) []*cobra.Command { return nil }
