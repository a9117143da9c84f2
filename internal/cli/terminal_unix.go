//go:build linux || darwin || freebsd || netbsd || dragonfly

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// toFront gives the terminal to the group, if it is this process's standard input
// and its own to give: otherwise the command could not read from it. It is not
// taken from others in this process's group, as the pager of a pipeline. It
// returns whether the group has got it now.
func (w *ward) toFront() bool {
	own, ok := foreground()
	if !ok || own != syscall.Getpgrp() || !alone() {
		return false
	}
	w.inFront = true
	setForeground(w.id)
	return true
}

// toBack takes the terminal back when the command has ended.
func (w *ward) toBack() {
	if w.inFront {
		signal.Ignore(syscall.SIGTTOU) // which is for those who take it from behind
		setForeground(syscall.Getpgrp())
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
