package servertest

import (
	"os/exec"
	"syscall"
)

// DieWithParent makes the kernel kill the server if the test is killed.
func DieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
