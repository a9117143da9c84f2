//go:build !unix

package servertest

import (
	"os"
	"os/exec"
)

// runAsUser does nothing on this system.
func runAsUser(*exec.Cmd, int, int) {}

// stopImmediately kills a PostgreSQL.
func stopImmediately(p *os.Process) error { return p.Kill() }
