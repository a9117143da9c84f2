//go:build !unix

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// ForwardedSignals are the signals that end a command.
var ForwardedSignals = []os.Signal{os.Interrupt}

// NewGroup lets the context of cmd terminate cmd only, because this system has no process
// groups.
func NewGroup(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
}

// KillGroup kills a command of [NewGroup] that was started.
func KillGroup(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // an error means that the process has already ended
}
