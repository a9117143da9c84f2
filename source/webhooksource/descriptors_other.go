//go:build !unix

package webhooksource

// descriptors has no limit on this system.
func descriptors() int { return 1 << 20 }
