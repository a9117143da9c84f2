//go:build unix

package execaction

import (
	"errors"
	"os"
	"syscall"
)

// terminate asks the process group that p leads to end.
func terminate(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// kill ends what is left of the process group that p leads, or has led. A group
// keeps its number while it has members, and a number that is free is long in
// coming round again.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
