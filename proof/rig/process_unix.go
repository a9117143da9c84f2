//go:build unix && !linux

package rig

import (
	"os/exec"
	"syscall"
)

// OwnProcessGroup starts the command in its own process group, so that Ctrl-C in a terminal reaches
// the parent only. The process survives if its parent is killed.
func OwnProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
