package sim

import (
	"fmt"

	"github.com/pawlhq/pawl/internal/simkit"
)

// Replay plays the world of a tape that a [Failure] brought, and tells it.
func Replay(text string) (violations []Violation, story []string, err error) {
	recorded, err := simkit.DecodeTape(text)
	if err != nil {
		return nil, nil, fmt.Errorf("sim: %w", err)
	}
	h, story := tell(recorded)
	return h.violations, story, nil
}

// Tell plays the world of a seed, and tells it.
func Tell(seed uint64) (violations []Violation, story []string) {
	pool := newThreads()
	defer pool.Close()
	h := playSeed(pool, seed, &story)
	return h.violations, story
}

func tell(recorded []uint32) (h history, story []string) {
	pool := newThreads()
	defer pool.Close()
	h = play(pool, simkit.ReplayTape(recorded), &shelf{}, &story)
	return h, story
}

// explain shrinks the tape of a failure, and tells the story of what is left.
func (f *Failure) explain() {
	pool := newThreads()
	defer pool.Close()
	recorded := playSeed(pool, f.Seed, nil).recorded
	what := f.Violations[0].Invariant
	short := simkit.Shrink(recorded, func(try []uint32) ([]uint32, bool) {
		h := play(pool, simkit.ReplayTape(try), &shelf{}, nil)
		return h.recorded, h.violates(what)
	})
	_, story := tell(short)
	f.Tape, f.Choices, f.Story = simkit.EncodeTape(short), len(short), story
}
