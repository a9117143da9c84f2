//go:build race

package lock

import "time"

// played is how many worlds are played under the race detector, which would take
// ten times as long, and a megabyte of memory for each: they have one thread.
const played = 200

// aloneFor is shorter under the race detector, because one goroutine uses the lock. tools/test
// plays the full time without it.
const aloneFor = time.Minute
