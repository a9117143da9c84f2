package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/simkit"
)

var (
	seed      = flag.Uint64("seed", 0, "first seed; 0 means a random one")
	histories = flag.Uint64("histories", 20_000, "number of worlds of TestWorlds")
)

func firstSeed(t *testing.T) uint64 {
	t.Helper()
	if *seed != 0 {
		return *seed
	}
	first := rand.Uint64N(1 << 40)
	t.Logf("first seed: %d", first)
	return first
}

// Every fault occurs at every step where it can occur (I14).
func TestWorlds(t *testing.T) {
	r := Run(t.Context(), Options{First: firstSeed(t), Histories: *histories})
	if f := r.Failure; f != nil {
		for _, v := range f.Violations {
			t.Errorf("%s (%s): %s", v.Invariant, v.Invariant.Description(), v.Detail)
		}
		t.Fatalf("repeat it with: go test ./proof/sim -run 'TestWorlds$' -histories 1 -seed %d\nor, shrunk to %d choices: go test ./proof/sim -run TestReplay -tape %s\n%s",
			f.Seed, f.Choices, f.Tape, strings.Join(f.Trace, "\n"))
	}
	if missed := r.Missed(); len(missed) > 0 && *histories >= 20_000 {
		t.Errorf("%s: never occurred in %d worlds: %s", I14, r.Histories, strings.Join(missed, ", "))
	}
	t.Logf("%d worlds of %d steps each, %d of them with a ledger like DynamoDB, %.0f per second, %d setbacks", r.Histories,
		r.Steps/r.Histories, r.Dynamo, float64(r.Histories)/r.Elapsed.Seconds(), r.Setbacks)
}

var tapeFlag = flag.String("tape", "", "tape for TestReplay")

func TestReplay(t *testing.T) {
	violations, trace, err := Replay(*tapeFlag)
	if err != nil {
		t.Fatal(err)
	}
	if *tapeFlag != "" {
		t.Log("\n" + strings.Join(trace, "\n"))
	}
	for _, v := range violations {
		t.Errorf("%s (%s): %s", v.Invariant, v.Invariant.Description(), v.Detail)
	}
}

// The second run and the replay of the tape have the same trace.
func TestRepeats(t *testing.T) {
	pool := newThreads()
	defer pool.Close()
	first := firstSeed(t)
	for s := first; s < first+200; s++ {
		var a, b, c []string
		recorded := runSeed(pool, s, &a).recorded
		runSeed(pool, s, &b)
		runWorld(pool, simkit.ReplayTape(recorded), &refStore{}, &c)
		if !slices.Equal(a, b) || !slices.Equal(a, c) {
			t.Fatalf("seed %d produces different worlds: %s", s, firstDifference(a, b, c))
		}
	}
}

func firstDifference(stories ...[]string) string {
	for i := range stories[0] {
		for _, s := range stories[1:] {
			if i >= len(s) || s[i] != stories[0][i] {
				return fmt.Sprintf("line %d, %s", i, stories[0][i])
			}
		}
	}
	return "one trace is longer"
}
