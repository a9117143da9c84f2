//go:build unix

package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlhq/pawl/proof/servertest"
)

// TestRollingUpgrade replaces the workers of TestKills, one at a time and under load, by a build whose rows have a
// higher minor version and one more member, and then by the first build again.
//
// The first build must keep the member of the second one: see [rowHistory].
func TestRollingUpgrade(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	next := filepath.Join(t.TempDir(), "pawl")
	if out, err := exec.Command("go", "build", "-tags", "formatnext", "-o", next, "github.com/pawlhq/pawl/cmd/pawl").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var last *round
	runRounds(t, &counts{}, func(t *testing.T, seed uint64) *round {
		last = newRound(t, servertest.MinIO, build(t), seed, nil)
		last.upgrades = []string{next, build(t)}
		return last
	})
	kept := 0
	for _, l := range last.journal.histories {
		kept += min(1, len(l.row.Unknown))
	}
	t.Logf("%d rows have the new member; the older build wrote such rows %d times", kept, last.journal.downgrade)
	if kept == 0 || last.journal.downgrade == 0 {
		t.Error("the builds did not write the same rows")
	}
}

// planUpgrades inserts replacements into the faults of each slot: first the first program in one slot after
// the other, then the next program.
func planUpgrades(faults [][]plannedFault, programs []string) {
	steps := len(programs)*len(faults) + 1
	for i, all := range faults {
		for n, program := range slices.Backward(programs) {
			faults[i] = slices.Insert(faults[i], len(all)*(n*len(faults)+i+1)/steps, plannedFault{replaceBy: program})
		}
	}
}
