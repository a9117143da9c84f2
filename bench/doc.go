// Package bench compares Pawl with other software. It is a separate module, so that Pawl's go.sum
// does not contain the competitors.
//
//	cd bench && go test -bench . -count 6 .
package bench
