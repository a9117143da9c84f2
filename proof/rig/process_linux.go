package rig

import (
	"os/exec"
	"syscall"
)

// SetApart keeps the Ctrl-C of a terminal from the process, which its parent ends itself.
// The kernel kills the process if its parent is killed.
func SetApart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
