package rig

import (
	"os/exec"
	"syscall"
)

// OwnProcessGroup keeps a terminal's Ctrl-C from the command. The command dies with its parent.
func OwnProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
