//go:build unix

package servertest

import (
	"os"
	"os/exec"
	"syscall"
)

// runAsUser makes the command run as another user.
func runAsUser(cmd *exec.Cmd, uid, gid int) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// stopImmediately stops a PostgreSQL and its child processes immediately.
func stopImmediately(p *os.Process) error { return p.Signal(syscall.SIGQUIT) }
