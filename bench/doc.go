// Package bench compares Pawl with other software. It is a separate module, so that a library user's
// go.sum does not contain the competitors.
//
//	cd bench && go test -bench . -count 6 .
package bench
