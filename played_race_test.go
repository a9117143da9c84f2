//go:build race

package pawl_test

import "time"

// The race detector makes these tests many times slower. tools/test also runs them without it.
const (
	auditedWrites  = 200
	auditedPause   = 20 * time.Minute
	rowsAmongNewer = 1_000
)
