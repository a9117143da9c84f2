//go:build race

package archive

import "time"

// worldCount is few: a world has one thread at a time, and none that races.
const worldCount = 20

// FailureTime is shorter under the race detector. tools/test plays the full time without it.
const FailureTime = 5 * time.Minute
