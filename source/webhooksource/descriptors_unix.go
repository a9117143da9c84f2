//go:build unix

package webhooksource

import "syscall"

// descriptors returns the maximum number of open file descriptors of this process.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024 // the usual default
	}
	return int(min(uint64(l.Cur), 1<<20))
}
