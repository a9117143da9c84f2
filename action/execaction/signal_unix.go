//go:build unix

package execaction

import (
	"errors"
	"os"
	"syscall"
)

// terminate sends SIGTERM to the process group that p leads.
func terminate(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// kill sends SIGKILL to the process group that p leads or has led. The number of the group stays in
// use while the group has members. The system reuses a free number only after a long time.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
