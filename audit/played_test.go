//go:build !race

package audit_test

const (
	minHistories = 60  // of TestBrakeInSimulations
	minKills     = 100 // of TestKilledAuditResumes
)
