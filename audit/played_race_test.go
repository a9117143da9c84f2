//go:build race

package audit_test

// The random tests play less under the race detector, which makes them up to a hundred
// times slower. tools/test plays the full numbers without it.
const (
	played = 6  // worlds of TestBrakeInSimulations, at least
	kills  = 10 // of TestKilledAuditResumes, at least
)
