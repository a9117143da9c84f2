//go:build unix

package servertest

import (
	"os"
	"os/exec"
	"syscall"
)

// runAsUser has the command run as another user.
func runAsUser(cmd *exec.Cmd, uid, gid int) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// stopImmediately ends a PostgreSQL at once, with the processes that it has started.
func stopImmediately(p *os.Process) error { return p.Signal(syscall.SIGQUIT) }
