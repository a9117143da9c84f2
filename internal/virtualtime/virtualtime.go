// Package virtualtime runs tests in virtual time, also under the race detector.
package virtualtime

import (
	"testing"
	"testing/synctest"
)

// Test is synctest.Test. Under the race detector, the process runs Go code in one thread meanwhile.
//
// Timers of a bubble share one context of the race detector. If two threads send from such timers at the same
// moment, the detector crashes with a segmentation violation or "ThreadSanitizer: CHECK failed" (Go 1.26.8).
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	defer singleThread()()
	synctest.Test(t, f)
}
