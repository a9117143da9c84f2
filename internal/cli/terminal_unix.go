//go:build linux || darwin || freebsd || netbsd || dragonfly

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// terminal is one that this process may give to the process group of a command.
type terminal struct {
	file  *os.File // which may be something else
	given bool
}

// give gives the terminal to the group, if it is this process's own to give:
// otherwise a command there could not read from it. It is not taken from others in
// this process's group, as the pager of a pipeline. It returns whether the group
// has it now.
func (t *terminal) give(group int) bool {
	switch now, ok := t.foreground(); {
	case !ok:
		return false
	case now == group:
		return true
	case now != syscall.Getpgrp() || !alone():
		return false
	}
	t.given = true
	t.setForeground(group)
	return true
}

// takeBack takes the terminal back when the command has ended.
func (t *terminal) takeBack() {
	if t.given {
		signal.Ignore(syscall.SIGTTOU) // which is for those who take it from behind
		t.setForeground(syscall.Getpgrp())
	}
}

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
