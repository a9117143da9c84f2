// Package bench sets Pawl against what it is compared with. It is a module of
// its own, so that a library user's go.sum does not grow by the other side.
//
//	cd bench && go test -bench . -count 6 .
package bench
