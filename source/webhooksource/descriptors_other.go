//go:build !unix

package webhooksource

// descriptors returns the maximum number of open connections and files of this process. This
// system has no limit.
func descriptors() int { return 1 << 20 }
