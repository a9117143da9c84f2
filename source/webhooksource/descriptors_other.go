//go:build !unix

package webhooksource

func descriptors() int { return 1 << 20 }
