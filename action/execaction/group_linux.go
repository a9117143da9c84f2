package execaction

import (
	"os/exec"
	"runtime"
	"syscall"
)

// isolate puts the command into its own process group, and makes the kernel kill it if Pawl dies.
// Otherwise the command would continue while another worker acquires the lease. The kernel watches
// the thread that started the command, so the calling goroutine stays on its thread until it calls
// release.
func isolate(cmd *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return runtime.UnlockOSThread
}
