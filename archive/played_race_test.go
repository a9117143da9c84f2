//go:build race

package archive

import "time"

// worldCount is small under the race detector. A simulated world runs one thread at a time, so the
// detector finds nothing in it.
const worldCount = 20

// FailureTime is shorter with the race detector. tools/test runs the full time without it.
const FailureTime = 5 * time.Minute
