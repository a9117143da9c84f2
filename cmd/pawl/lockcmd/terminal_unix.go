//go:build unix

package lockcmd

import (
	"os"
	"os/signal"
	"syscall"
)

// terminal is one that this process may give to the process group of a command.
type terminal struct {
	file   *os.File // which may be something else
	to     int      // the group that it was given to; 0 for none
	wanted bool     // the command is stopped, and may go on when it has the terminal
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
	t.to = group
	t.setForeground(group)
	return true
}

// stopped is told what has stopped the command: that it wants the terminal and does
// not have it, or the keyboard of the one that it has. The shell knows only this
// process, and could not continue it.
func (t *terminal) stopped(by syscall.Signal) {
	switch by {
	case syscall.SIGTTIN, syscall.SIGTTOU:
		t.wanted = true
	case syscall.SIGTSTP:
		t.wanted = t.wanted || t.to != 0
	}
}

// satisfy gives the terminal to a command that wants it. It returns whether the
// command may go on. Where this process is not in front, a shell may bring it there
// later.
func (t *terminal) satisfy(group int) bool {
	if !t.wanted || !t.give(group) {
		return false
	}
	t.wanted = false
	return true
}

// takeBack takes the terminal back when the command has ended. A shell that has it
// by then keeps it.
func (t *terminal) takeBack() {
	if now, ok := t.foreground(); ok && t.to != 0 && now == t.to {
		signal.Ignore(syscall.SIGTTOU) // which is for those who take it from behind
		t.setForeground(syscall.Getpgrp())
	}
}
