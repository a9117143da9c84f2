//go:build !race

package audit_test

const (
	minHistories = 60  // worlds of TestBrakeInSimulations, at least
	minKills     = 100 // of TestKilledAuditResumes, at least
)
