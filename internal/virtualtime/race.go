//go:build race

package virtualtime

import (
	"runtime"
	"sync"
)

var running struct {
	sync.Mutex
	bubbles, threads int
}

// singleThread returns a function that ends the restriction, once no other bubble needs it.
func singleThread() (end func()) {
	running.Lock()
	defer running.Unlock()
	if running.bubbles++; running.bubbles == 1 {
		running.threads = runtime.GOMAXPROCS(1)
	}
	return func() {
		running.Lock()
		defer running.Unlock()
		if running.bubbles--; running.bubbles == 0 {
			runtime.GOMAXPROCS(running.threads)
		}
	}
}
