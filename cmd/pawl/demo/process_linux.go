package demo

import (
	"os/exec"
	"syscall"
)

// setApart keeps a terminal's Ctrl-C from the worker, which the demo ends
// itself, and lets the kernel end the worker should the demo be killed.
func setApart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
