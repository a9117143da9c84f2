//go:build !race

package archive

import "time"

const worldCount = 2000

// FailureTime is how long a worker cannot store in TestFailingWorkerLosesItsShards, in virtual time.
const FailureTime = 20 * time.Minute
