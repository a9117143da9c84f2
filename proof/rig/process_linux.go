package rig

import (
	"os/exec"
	"syscall"
)

// OwnProcessGroup keeps the Ctrl-C of a terminal from the process, which its parent ends itself.
// The kernel kills the process if its parent is killed.
func OwnProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
