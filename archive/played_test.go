//go:build !race

package archive

import "time"

const worldCount = 2000

// FailureTime is the virtual time for which a worker cannot store.
const FailureTime = 20 * time.Minute
