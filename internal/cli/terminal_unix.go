//go:build linux || darwin || freebsd || netbsd || dragonfly

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// toFront gives the terminal to the group, if it is this process's standard input
// and its own to give: otherwise the command could not read from it. The caller
// calls back when the command has ended.
func (w *ward) toFront() (back func()) {
	own, ok := foreground()
	if !ok || own != syscall.Getpgrp() {
		return func() {}
	}
	w.inFront = true
	setForeground(w.id)
	return func() {
		signal.Ignore(syscall.SIGTTOU) // which is for those who take it from behind
		setForeground(own)
	}
}

// foreground returns the process group that the terminal belongs to.
func foreground() (group int, ok bool) {
	var g int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, os.Stdin.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&g)))
	return int(g), errno == 0
}

// setForeground gives the terminal to a group. Who cannot have it runs without.
func setForeground(group int) {
	g := int32(group)
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, os.Stdin.Fd(), syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&g)))
}
