//go:build !unix

package cli

import (
	"os/exec"
	"syscall"
)

// startFilter starts the command: there are no process groups here.
func startFilter(cmd *exec.Cmd) (leave func(), err error) { return func() {}, cmd.Start() }

func terminateFilter(cmd *exec.Cmd) error { return signalGroup(cmd, syscall.SIGTERM) }

func signalGroup(cmd *exec.Cmd, s syscall.Signal) error { return cmd.Process.Signal(s) }
