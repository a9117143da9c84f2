//go:build !unix

package execaction

import (
	"os"
	"os/exec"
)

// There are no process groups on this system.
func isolate(*exec.Cmd) (release func()) { return func() {} }

func terminate(p *os.Process) error { return p.Kill() }

func kill(p *os.Process) { _ = p.Kill() }
