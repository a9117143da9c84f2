//go:build !unix

package servertest

import (
	"os"
	"os/exec"
)

// runAsUser has nothing to do: nobody is root here.
func runAsUser(*exec.Cmd, int, int) {}

// stopImmediately ends a PostgreSQL.
func stopImmediately(p *os.Process) error { return p.Kill() }
