package sim

import (
	"fmt"

	"github.com/pawlhq/pawl/internal/simkit"
)

// Replay runs the world of a tape from a [Failure].
func Replay(text string) (violations []Violation, trace []string, err error) {
	recorded, err := simkit.DecodeTape(text)
	if err != nil {
		return nil, nil, fmt.Errorf("sim: %w", err)
	}
	h, trace := traceTape(recorded)
	return h.violations, trace, nil
}

// TraceSeed runs the world of a seed.
func TraceSeed(seed uint64) (violations []Violation, trace []string) {
	pool := newThreads()
	defer pool.Close()
	h := runSeed(pool, seed, &trace)
	return h.violations, trace
}

func traceTape(recorded []uint32) (h result, trace []string) {
	pool := newThreads()
	defer pool.Close()
	h = runWorld(pool, simkit.ReplayTape(recorded), &refStore{}, &trace)
	return h, trace
}

func (f *Failure) explain() {
	pool := newThreads()
	defer pool.Close()
	recorded := runSeed(pool, f.Seed, nil).recorded
	what := f.Violations[0].Invariant
	short := simkit.Shrink(recorded, func(try []uint32) ([]uint32, bool) {
		h := runWorld(pool, simkit.ReplayTape(try), &refStore{}, nil)
		return h.recorded, h.violates(what)
	})
	_, trace := traceTape(short)
	f.Tape, f.Choices, f.Trace = simkit.EncodeTape(short), len(short), trace
}
