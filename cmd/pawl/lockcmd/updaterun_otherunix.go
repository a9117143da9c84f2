//go:build unix && !linux

package lockcmd

import "syscall"

// stopSignal takes it that a child of which there is news wants the terminal: why it
// was stopped cannot be told here without taking its end from others who wait for
// that.
func stopSignal(int) (s syscall.Signal, stopped bool) { return syscall.SIGTTIN, true }
