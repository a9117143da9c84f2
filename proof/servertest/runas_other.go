//go:build !unix

package servertest

import (
	"os"
	"os/exec"
)

func runAsUser(*exec.Cmd, int, int) {}

func stopImmediately(p *os.Process) error { return p.Kill() }
