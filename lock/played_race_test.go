//go:build race

package lock

import "time"

// worldCount is the number of worlds under the race detector. Under the detector, a simulated world
// takes ten times as long and a megabyte of memory. A world runs one goroutine at a time, so the
// detector finds nothing in it.
const worldCount = 200

// soleUserTime is shorter under the race detector, because one goroutine uses the lock. tools/test
// runs the full time without it.
const soleUserTime = time.Minute
