//go:build !unix

package rig

import (
	"os"
	"os/exec"
)

var terminateSignal = os.Kill

// OwnProcessGroup does nothing on this system.
func OwnProcessGroup(*exec.Cmd) {}

// Freeze does nothing on this system.
func (p *Process) Freeze() error { return nil }

// Thaw does nothing on this system.
func (p *Process) Thaw() error { return nil }
