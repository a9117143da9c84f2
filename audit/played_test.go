//go:build !race

package audit_test

const (
	played = 60  // worlds of TestBrakeInWorlds, at least
	kills  = 100 // of TestKilled, at least
)
