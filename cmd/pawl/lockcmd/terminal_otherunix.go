//go:build unix && !(linux || darwin || freebsd || netbsd || dragonfly)

package lockcmd

// foreground cannot be told here: a command cannot read from the terminal.
func (t *terminal) foreground() (group int, ok bool) { return 0, false }

func (t *terminal) setForeground(int) {}
