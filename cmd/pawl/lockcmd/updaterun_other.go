//go:build !unix

package lockcmd

import (
	"os"
	"os/exec"
	"syscall"
)

// startFilter starts the command: there are no process groups here.
func startFilter(cmd *exec.Cmd) error { return cmd.Start() }

func terminateFilter(cmd *exec.Cmd) error { return signalGroup(cmd, syscall.SIGTERM) }

func signalGroup(cmd *exec.Cmd, s syscall.Signal) error { return cmd.Process.Signal(s) }

// forwarded are the signals that end what runs.
var forwarded = []os.Signal{os.Interrupt}
