//go:build unix && !(linux || darwin || freebsd || netbsd || dragonfly)

package cli

// toFront does nothing: the command cannot read from a terminal here.
func (w *ward) toFront() bool { return false }

func (w *ward) toBack() {}
