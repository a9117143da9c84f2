//go:build !race

package lock

import "time"

const worldCount = 20_000

// soleUserTime is the virtual time of TestSoleUserWaitsLittle.
const soleUserTime = 10 * time.Minute
