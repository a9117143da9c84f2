//go:build !race

package virtualtime

func singleThread() (end func()) { return func() {} }
