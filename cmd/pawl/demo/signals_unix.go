//go:build unix

package demo

import "syscall"

const softly = syscall.SIGTERM

// freeze stops the process where it is, and thaw lets it go on.
func (w *worker) freeze() error { return w.process.Signal(syscall.SIGSTOP) }
func (w *worker) thaw() error   { return w.process.Signal(syscall.SIGCONT) }
