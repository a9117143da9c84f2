package mutants

import (
	"bytes"
	"testing"
)

// TestExplorer holds that the explorer of small worlds notices what is wrong,
// too, where it goes wrong in its scope. Other mutants need more than its worlds
// have: handlers that fail, contents that come back, three holders.
func TestExplorer(t *testing.T) {
	for _, tc := range []struct{ mutant, scope string }{
		{"an-older-event-wins", "publishing-3"},
		{"acknowledged-before-the-ledger-answers", "publishing-crash"},
		{"a-crash-keeps-the-row-for-good", "publishing-crash"},
		{"a-lease-without-a-fence", "publishing-stall"},
		{"a-takeover-without-a-verification", "untrusted-crash"},
		{"412-taken-for-done", "publishing-stall"},
		{"published-without-a-condition", "publishing-stall"},
		{"pinned-after-the-read", "publishing-stall"},
	} {
		t.Run(tc.mutant, func(t *testing.T) {
			t.Parallel()
			m := All()[index(All(), tc.mutant)]
			out, err := command(t, "go", "test", "-overlay", m.overlay(t), "-vet=off", "-count=1", "./internal/sim", "-run", "TestExplore/"+tc.scope+"$")
			if err == nil || !bytes.Contains(out, []byte("--- FAIL: TestExplore/"+tc.scope+" ")) {
				t.Errorf("it lives in %s: %s\n%v\n%s", tc.scope, m.Why, err, out)
			}
		})
	}
}
