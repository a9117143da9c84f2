package sim

import (
	"github.com/pawlhq/pawl/ledger"
)

// history is what one world came to.
type history struct {
	steps, setbacks int
	recorded        []uint32
	violations      []Violation
	hit             *[steps][faults]int
	rows            []ledger.Row
}

// play lets one world happen.
func play(pool *threads, tp *tape, store ledger.Store, story *[]string) history {
	w := newWorld(pool, tp, store)
	w.story = story
	w.play()
	h := history{steps: w.steps, setbacks: w.setbacks, recorded: tp.recorded, violations: w.violations, hit: &w.hit}
	for _, t := range w.truths {
		if t.exists {
			h.rows = append(h.rows, t.row)
		}
	}
	return h
}

// playSeed plays the world of a seed over a ledger in memory.
func playSeed(pool *threads, seed uint64, story *[]string) history {
	return play(pool, newTape(seed), &shelf{}, story)
}
