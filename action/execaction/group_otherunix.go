//go:build unix && !linux

package execaction

import (
	"os/exec"
	"syscall"
)

// isolate gives the command a process group of its own.
func isolate(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {}
}
