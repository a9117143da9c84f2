//go:build !race

package lock

import "time"

// worldCount is the number of simulated worlds.
const worldCount = 20_000

// soleUserTime is the virtual time for which TestSoleUserWaitsLittle uses its lock.
const soleUserTime = 10 * time.Minute
