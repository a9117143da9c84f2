//go:build !unix

package rig

import (
	"os"
	"os/exec"
)

var softly = os.Kill

// SetApart does nothing on this system.
func SetApart(*exec.Cmd) {}

// Freeze does nothing on this system.
func (p *Process) Freeze() error { return nil }

// Thaw does nothing on this system.
func (p *Process) Thaw() error { return nil }
