package servertest

import (
	"os/exec"
	"syscall"
)

// DieWithParent lets the kernel end the server when the test is killed and no
// cleanup runs.
func DieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
