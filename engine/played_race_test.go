//go:build race

package engine_test

// played is smaller under the race detector, because a history has one thread.
// tools/test plays the full number without it.
const played = 60
