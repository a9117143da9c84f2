//go:build !race

package lock

import "time"

// played is how many worlds are played.
const played = 20_000

// aloneFor is how long TestALoneUser uses its lock, in virtual time.
const aloneFor = 10 * time.Minute
