//go:build race

package archive

import "time"

// played is few: a world has one thread at a time, and none that races.
const played = 20

// SickTime is shorter under the race detector. tools/test plays the full time without it.
const SickTime = 5 * time.Minute
