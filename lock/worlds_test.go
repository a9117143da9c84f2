package lock

import (
	"flag"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/internal/simkit"
)

var (
	histories = flag.Uint64("histories", played, "how many worlds TestWorlds plays")
	firstSeed = flag.Uint64("seed", 1, "the first world's number")
	tapeFlag  = flag.String("tape", "", "the tape that TestReplay plays")
)

// TestWorlds plays simulated worlds in which requests and answers are lost, late,
// doubled and refused by mistake, processes stand still beyond their leases or
// die, and clocks differ in time and rate.
func TestWorlds(t *testing.T) {
	var next, steps atomic.Uint64
	var failed atomic.Bool
	var wg sync.WaitGroup
	var mu sync.Mutex
	worst := *firstSeed + *histories
	for range 2 {
		wg.Go(func() {
			for !failed.Load() {
				n := next.Add(1) - 1
				if n >= *histories {
					return
				}
				o := play(simkit.NewTape(*firstSeed+n), nil)
				steps.Add(uint64(o.steps))
				if len(o.wrong) > 0 {
					failed.Store(true)
					mu.Lock()
					worst = min(worst, *firstSeed+n)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if failed.Load() {
		explain(t, worst)
	}
	t.Logf("%d worlds of %d steps on average", *histories, steps.Load() / *histories)
}

// explain shrinks a world that went wrong, and tells it.
func explain(t *testing.T, seed uint64) {
	t.Helper()
	o := play(simkit.NewTape(seed), nil)
	what := o.wrong[0][:2]
	short := simkit.Shrink(o.recorded, func(try []uint32) ([]uint32, bool) {
		o := play(simkit.ReplayTape(try), nil)
		return o.recorded, o.violates(what)
	})
	var story []string
	o = play(simkit.ReplayTape(short), &story)
	t.Fatalf("%s\nrepeat it with: go test ./lock -run 'TestWorlds$' -histories 1 -seed %d\nor, shrunk to %d choices: go test ./lock -run TestReplay -v -tape %s\n%s",
		strings.Join(o.wrong, "\n"), seed, len(short), simkit.EncodeTape(short), strings.Join(story, "\n"))
}

// TestReplay tells the story of a tape.
func TestReplay(t *testing.T) {
	recorded, err := simkit.DecodeTape(*tapeFlag)
	if err != nil {
		t.Fatal(err)
	}
	var story []string
	o := play(simkit.ReplayTape(recorded), &story)
	t.Log("\n" + strings.Join(story, "\n"))
	if len(o.wrong) > 0 {
		t.Error(strings.Join(o.wrong, "\n"))
	}
}
