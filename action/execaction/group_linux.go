package execaction

import (
	"os/exec"
	"runtime"
	"syscall"
)

// isolate makes a process group, and lets the kernel kill the command if Pawl dies. Otherwise it
// would continue while another worker acquires the lease. The kernel watches the thread that
// started the command, so the goroutine stays on its thread until release.
func isolate(cmd *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return runtime.UnlockOSThread
}
