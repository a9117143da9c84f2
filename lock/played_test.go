//go:build !race

package lock

import "time"

// worldCount is how many worlds are played.
const worldCount = 20_000

// soleUserTime is how long TestSoleUserWaitsLittle uses its lock, in virtual time.
const soleUserTime = 10 * time.Minute
