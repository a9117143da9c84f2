//go:build unix && !linux

package rig

import (
	"os/exec"
	"syscall"
)

// OwnProcessGroup keeps a terminal's Ctrl-C from the command. The command survives its parent.
func OwnProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
