package servertest

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets the kernel end the server when the test is killed and no
// cleanup runs.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
