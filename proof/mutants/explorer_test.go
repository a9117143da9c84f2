package mutants

import (
	"bytes"
	"testing"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/proof/sim"
)

// Other mutants need failing handlers, returning contents, or three lease holders.
func TestExplorer(t *testing.T) {
	servertest.Long(t)
	for _, tc := range []struct {
		mutant, scope string
		invariant     sim.Invariant
	}{
		{"an-older-event-wins", "publishing-3", sim.I5},
		{"acknowledged-before-the-ledger-answers", "publishing-crash", sim.I7},
		{"a-crash-keeps-the-row-for-good", "publishing-crash", sim.I4},
		{"a-lease-without-a-fence", "publishing-stall", sim.I8},
		{"a-takeover-without-a-verification", "untrusted-crash", sim.I6},
		{"412-taken-for-done", "publishing-stall", sim.I8},
		{"published-without-a-condition", "publishing-stall", sim.I2},
		{"pinned-after-the-read", "publishing-stall", sim.I2},
	} {
		i := index(chosen(t), tc.mutant)
		if i < 0 {
			continue
		}
		t.Run(tc.mutant, func(t *testing.T) {
			t.Parallel()
			m := chosen(t)[i]
			out, err := command(t, "go", "test", "-overlay", m.overlay(t), "-vet=off", "-count=1", "./proof/sim", "-run", "TestExplore/"+tc.scope+"$")
			if err == nil || !bytes.Contains(out, []byte(tc.invariant.String()+" ("+tc.invariant.Description()+"): ")) {
				t.Errorf("%s does not detect in %s: %s\n%v\n%s", tc.invariant, tc.scope, m.Why, err, out)
			}
		})
	}
}
