//go:build unix && !linux

package rig

import (
	"os/exec"
	"syscall"
)

// OwnProcessGroup keeps the Ctrl-C of a terminal from the process, which its parent ends itself.
// The process outlives a parent that is killed.
func OwnProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
