//go:build !unix

package lockcmd

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
)

// Without process groups, pawl could not end the command and its children when the lock is lost.
func runLock(context.Context, *app.App, event.Object, []string, *lockOptions) error {
	return usageError("pawl lock cannot run commands on %s, because it cannot end them if the lock is lost: use package lock of the library, or WSL", runtime.GOOS)
}

// GuardCommands returns nothing: no command runs here.
func GuardCommands(*app.App) []*cobra.Command { return nil }
