//go:build unix && !linux

package execaction

import (
	"os/exec"
	"syscall"
)

func isolate(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {}
}
