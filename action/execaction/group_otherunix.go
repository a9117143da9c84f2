//go:build unix && !linux

package execaction

import (
	"os/exec"
	"syscall"
)

// isolate puts the command into its own process group.
func isolate(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {}
}
