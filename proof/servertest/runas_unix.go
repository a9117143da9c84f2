//go:build unix

package servertest

import (
	"os"
	"os/exec"
	"syscall"
)

func runAsUser(cmd *exec.Cmd, uid, gid int) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// stopImmediately also stops the child processes of a PostgreSQL.
func stopImmediately(p *os.Process) error { return p.Signal(syscall.SIGQUIT) }
