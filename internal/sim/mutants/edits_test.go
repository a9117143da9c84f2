package mutants

import "testing"

// TestEdits checks in a second, and not with the first mutant that is played, that
// all edits quote what is there.
func TestEdits(t *testing.T) {
	for _, m := range All() {
		t.Run(m.Name, func(t *testing.T) { m.overlay(t) })
	}
}
