//go:build race

package archive

import "time"

// worldCount is small with the race detector: a world runs one thread at a time.
const worldCount = 20

// FailureTime is shorter with the race detector. tools/test runs the full time without it.
const FailureTime = 5 * time.Minute
