//go:build !unix

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// ForwardedSignals are the signals that end a command.
var ForwardedSignals = []os.Signal{os.Interrupt}

// NewGroup lets the context of cmd terminate only cmd, because there are no process groups.
func NewGroup(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
}

// KillGroup kills a started command of [NewGroup].
func KillGroup(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
}
