//go:build race

package lock

import "time"

// worldCount is the number of worlds under the race detector. There, worlds take ten times as long,
// and a megabyte of memory each. They have one thread, so the detector finds nothing in them.
const worldCount = 200

// soleUserTime is shorter under the race detector, because one goroutine uses the lock. tools/test
// runs the full time without it.
const soleUserTime = time.Minute
