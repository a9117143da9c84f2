//go:build !unix

package execaction

import (
	"os"
	"os/exec"
)

// isolate does nothing, because there are no process groups on this system.
func isolate(*exec.Cmd) (release func()) { return func() {} }

// terminate kills the process, because this system has no gentler way.
func terminate(p *os.Process) error { return p.Kill() }

func kill(p *os.Process) { _ = p.Kill() }
