//go:build unix && !linux

package rig

import (
	"os/exec"
	"syscall"
)

// SetApart keeps the Ctrl-C of a terminal from the process, which its parent ends itself.
// The process outlives a parent that is killed.
func SetApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
