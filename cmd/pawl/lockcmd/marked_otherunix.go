//go:build unix && !linux

package lockcmd

import (
	"os"
	"syscall"

	"github.com/pawlhq/pawl/cmd/pawl/app"
)

// signalMarked finds nothing: what another process has in its environment cannot
// be told here.
func signalMarked(string, syscall.Signal, ...int) (found int) { return 0 }

// alone reports that this process is not the head of a pipeline, as far as can be
// told: the rest of that may read from the terminal.
func alone() bool { return app.IsTerminal(os.Stdout) }
