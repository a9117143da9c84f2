//go:build unix

package rig

import "syscall"

const terminateSignal = syscall.SIGTERM

// Freeze suspends the process.
func (p *Process) Freeze() error { return p.Signal(syscall.SIGSTOP) }

// Thaw continues a frozen process.
func (p *Process) Thaw() error { return p.Signal(syscall.SIGCONT) }
