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

// NewGroup makes cmd, which must have a context, start in a session of its own, which has
// one process group and no terminal. A command that opens the terminal fails, and is not
// stopped as a background job. The end of the context terminates the group.
func NewGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT) // a stopped process handles SIGTERM
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// KillGroup kills the rest of a group of [NewGroup] whose command was started.
func KillGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
}
