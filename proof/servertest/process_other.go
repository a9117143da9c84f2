//go:build !linux

package servertest

import "os/exec"

// DieWithParent does nothing: a killed test leaves its server running.
func DieWithParent(*exec.Cmd) {}
