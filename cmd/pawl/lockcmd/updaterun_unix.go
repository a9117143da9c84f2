//go:build unix

package lockcmd

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// startFilter starts the command in a session of its own, which has one process group and
// no terminal. A filter that opens the terminal fails, and is not stopped as a background job.
func startFilter(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// terminateFilter asks the filter's process group to end. SIGCONT lets a stopped process
// handle SIGTERM.
func terminateFilter(cmd *exec.Cmd) error {
	err := signalGroup(cmd, syscall.SIGTERM)
	_ = signalGroup(cmd, syscall.SIGCONT) // it may have ended
	return err
}

// signalGroup sends a signal to the command's process group.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
