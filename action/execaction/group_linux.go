package execaction

import (
	"os/exec"
	"runtime"
	"syscall"
)

// isolate gives the command a process group of its own, and has the kernel kill
// it should Pawl die: its lease would pass to another worker while it ran on.
// The kernel watches the thread that started it, so the calling goroutine keeps
// its thread until it calls release.
func isolate(cmd *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return runtime.UnlockOSThread
}
