//go:build race

package audit_test

// Random tests run fewer repetitions under the race detector, which slows them down up
// to a hundred times. tools/test also runs the full numbers without it.
const (
	minHistories = 6  // of TestBrakeInSimulations
	minKills     = 10 // of TestKilledAuditResumes
)
