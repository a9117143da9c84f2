//go:build linux || darwin || freebsd || netbsd || dragonfly

package lockcmd

import (
	"syscall"
	"unsafe"
)

// foreground returns the process group that the terminal belongs to.
func (t *terminal) foreground() (group int, ok bool) {
	var g int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, t.file.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&g)))
	return int(g), errno == 0
}

// setForeground gives the terminal to a group. Who cannot have it runs without.
func (t *terminal) setForeground(group int) {
	g := int32(group)
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, t.file.Fd(), syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&g)))
}
