//go:build unix

package webhooksource

import "syscall"

// descriptors returns how many descriptors this process may have.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024 // what most systems allow
	}
	return int(min(uint64(l.Cur), 1<<20))
}
