//go:build race

package lock

import "time"

// worldCount is small, because a world takes ten times as long under the race detector. The
// detector finds nothing in a world, because one goroutine runs at a time.
const worldCount = 200

// soleUserTime is short: one goroutine uses the lock. tools/test runs the full time without the
// detector.
const soleUserTime = time.Minute
