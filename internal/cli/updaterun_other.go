//go:build !unix

package cli

import (
	"os/exec"
	"syscall"
)

// ownGroup does nothing: there are no process groups here.
func ownGroup(*exec.Cmd) {}

func signalGroup(cmd *exec.Cmd, s syscall.Signal) error { return cmd.Process.Signal(s) }
