// Package bench compares Pawl with other software. It is a separate module, so that the go.sum
// of Pawl's users does not contain the competitors.
//
//	cd bench && go test -bench . -count 6 .
package bench
