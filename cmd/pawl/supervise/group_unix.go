//go:build unix

package supervise

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ForwardedSignals are the signals that a supervisor forwards to its command.
var ForwardedSignals = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// NewGroup makes cmd start in a new session without a terminal, so that it is not stopped as a
// background job. The group is terminated when the context of cmd ends.
func NewGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT) // a stopped process does not handle SIGTERM
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// KillGroup kills the group of a started command of [NewGroup].
func KillGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
