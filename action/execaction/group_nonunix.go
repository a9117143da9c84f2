//go:build !unix

package execaction

import (
	"os"
	"os/exec"
)

// isolate does nothing: there are no process groups here.
func isolate(*exec.Cmd) (release func()) { return func() {} }

// terminate ends the process itself; there is no softer way here.
func terminate(p *os.Process) error { return p.Kill() }

// kill ends the process itself.
func kill(p *os.Process) { _ = p.Kill() }
