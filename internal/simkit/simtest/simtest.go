// Package simtest runs simulated worlds as tests, with flags that repeat a world.
package simtest

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/simkit"
)

var (
	histories = flag.Uint64("histories", 0, "number of `worlds` that TestWorlds runs; 0 means its default")
	seed      = flag.Uint64("seed", 1, "`seed` of the first world")
	tape      = flag.String("tape", "", "`tape` that TestReplay runs")
)

// Worlds runs count simulated worlds, or -histories. It shrinks the first world that fails, and prints
// commands that repeat it in the package's directory dir.
func Worlds[P interface{ Close() }](t *testing.T, dir string, count uint64, s simkit.Simulation[P]) {
	t.Helper()
	if *histories > 0 {
		count = *histories
	}
	f, steps := s.Run(t.Context(), *seed, count)
	if f != nil {
		t.Fatalf("%s\nrepeat it with: go test %s -run 'TestWorlds$' -histories 1 -seed %d\nor, shrunk to %d choices: go test %s -run 'TestReplay$' -v -tape %s\n%s",
			lines(f.Violations), dir, f.Seed, len(f.Shrunk), dir, simkit.EncodeTape(f.Shrunk), strings.Join(f.Trace, "\n"))
	}
	t.Logf("%d worlds of %d steps on average", count, steps/count)
}

// Replay runs the tape in the flag -tape, and logs its trace.
func Replay[P interface{ Close() }](t *testing.T, s simkit.Simulation[P]) {
	t.Helper()
	recorded, err := simkit.DecodeTape(*tape)
	if err != nil {
		t.Fatal(err)
	}
	w := s.Replay(simkit.ReplayTape(recorded))
	t.Log("\n" + strings.Join(*w.Trace, "\n"))
	if len(w.Violations) > 0 {
		t.Error(lines(w.Violations))
	}
}

func lines(all []simkit.Violation) string {
	var b strings.Builder
	for _, v := range all {
		fmt.Fprintln(&b, v)
	}
	return b.String()
}
