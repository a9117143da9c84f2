//go:build race

package audit_test

// The race detector makes these random tests up to a hundred times slower. tools/test also runs
// them without it.
const (
	minHistories = 6  // of TestBrakeInSimulations
	minKills     = 10 // of TestKilledAuditResumes
)
