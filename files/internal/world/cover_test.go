package world

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/simkit"
)

func TestWorldsReachAllStates(t *testing.T) {
	var all strings.Builder
	for s := range uint64(2000) {
		for _, line := range *Simulation.Replay(simkit.NewTape(s)).Trace {
			all.WriteString(line + "\n")
		}
	}
	for _, want := range []string{
		"is pending", "is indexed", "is lost", "is deleted", "is purging", "is gone", "is expired",
		"has deleted", "has undeleted", "party removes the object", "party replaces the object", "party restores the object", "Moved:map[lost:", "Moved:map[indexed:", "Leftovers:1", "Orphans:1", "Removed:1", "is removed", "land",
		"part 3 of", "begins, late: false", "begins, late: true", "is over", "completes 00000001-0000-7000-8000-000000000000: indexed", "completes 00000001-0000-7000-8000-000000000000: expired",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("in no world: %s", want)
		}
	}
}
