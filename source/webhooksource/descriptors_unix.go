//go:build unix

package webhooksource

import "syscall"

func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024
	}
	return int(min(uint64(l.Cur), 1<<20))
}
