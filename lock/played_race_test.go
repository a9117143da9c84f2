//go:build race

package lock

import "time"

// worldCount is how many worlds are played under the race detector, which would take
// ten times as long, and a megabyte of memory for each: they have one thread.
const worldCount = 200

// soleUserTime is shorter under the race detector, because one goroutine uses the lock. tools/test
// plays the full time without it.
const soleUserTime = time.Minute
