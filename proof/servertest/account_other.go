//go:build !unix

package servertest

import (
	"os"
	"os/exec"
)

// runAs has nothing to do: nobody is root here.
func runAs(*exec.Cmd, int, int) {}

// quit ends a PostgreSQL.
func quit(p *os.Process) error { return p.Kill() }
