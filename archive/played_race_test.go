//go:build race

package archive

import "time"

// The race detector finds nothing in a simulated world, which runs one thread at a time.
const worldCount = 20

const FailureTime = 5 * time.Minute
