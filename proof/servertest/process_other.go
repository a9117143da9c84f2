//go:build !linux

package servertest

import "os/exec"

// DieWithParent has no counterpart here: a killed test leaves its server
// behind.
func DieWithParent(*exec.Cmd) {}
