//go:build unix && !linux

package demo

import (
	"os/exec"
	"syscall"
)

// setApart keeps a terminal's Ctrl-C from the worker, which the demo ends
// itself. A demo that is killed leaves its workers behind.
func setApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
