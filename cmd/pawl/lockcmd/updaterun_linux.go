package lockcmd

import (
	"syscall"
	"unsafe"
)

// stopSignal returns the signal by which a child was stopped since the last call.
// It leaves the end of the child to others who wait for that.
func stopSignal(pid int) (s syscall.Signal, stopped bool) {
	const byPID = 1 // P_PID
	var info struct {
		_     [3]int32 // of the signal SIGCHLD itself
		child struct {
			_      [0]uintptr
			pid    int32 // 0 when there is nothing to tell
			_      uint32
			status int32
		}
		_ [128]byte // the kernel writes more than that
	}
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), uintptr(unsafe.Pointer(&info)),
		syscall.WSTOPPED|syscall.WNOHANG, 0, 0)
	return syscall.Signal(info.child.status), errno == 0 && int(info.child.pid) == pid
}
