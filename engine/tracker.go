package engine

import (
	"math"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pawlhq/pawl/ledger"
)

// tracker counts the delivered objects that are neither settled nor dead. Active ones have
// an entry. Parked ones have none, because they back off or another worker holds them.
// Sweeps return most parked objects later, but not those that another worker settles, so
// the engine also loads parked rows.
type tracker struct {
	active       int
	parked       *simplelru.LRU[ledger.RowKey, int] // value: loads at the time of parking
	loads        int                                // number of load requests
	asked        bool                               // a load is unanswered
	sourcesEnded bool                               // no delivery follows
	next         time.Time                          // time of the next load
}

func newTracker() tracker {
	parked, _ := simplelru.NewLRU[ledger.RowKey, int](math.MaxInt, nil) // fails only for a size below one
	return tracker{parked: parked}
}

func (t *tracker) unsettled() int { return t.active + t.parked.Len() }

// track counts a delivered object.
func (t *tracker) track(en *entry) {
	if !en.tracked {
		en.tracked = true
		t.active++
	}
}

func (t *tracker) untrack(en *entry) {
	if en.tracked {
		en.tracked = false
		t.active--
	}
}

// park keeps the key of an unsettled object without an entry.
func (t *tracker) park(en *entry) {
	if en.tracked {
		t.parked.Add(en.key, t.loads)
		t.untrack(en)
	}
}

// resume moves a parked object that has a new entry back to the active ones.
func (t *tracker) resume(en *entry) {
	if t.parked.Remove(en.key) {
		t.track(en)
	}
}

// wantsLoad reports whether to load parked rows. After the sources have ended, it is true
// if any object is parked. Before, it is true if more than limit objects are parked, so
// that the tracker can forget those that other workers have settled.
func (t *tracker) wantsLoad(limit int) bool {
	if t.asked {
		return false
	}
	if t.sourcesEnded {
		return t.parked.Len() > 0
	}
	return t.parked.Len() > limit
}

// nextKeys returns the next parked keys to load, at most limit, in rotation.
func (t *tracker) nextKeys(limit int) []ledger.RowKey {
	t.asked = true
	t.loads++
	keys := make([]ledger.RowKey, min(t.parked.Len(), limit))
	for i := range keys {
		keys[i], _, _ = t.parked.GetOldest()
		t.parked.Get(keys[i]) // moves the key to the end
	}
	return keys
}

func (t *tracker) answered(next time.Time) { t.asked, t.next = false, next }

// parkedBeforeLoad reports whether an object was already parked when the last load was
// requested. For other objects, the answer may be out of date.
func (t *tracker) parkedBeforeLoad(key ledger.RowKey) bool {
	loads, parked := t.parked.Peek(key)
	return parked && loads < t.loads
}

func (t *tracker) drop(key ledger.RowKey) { t.parked.Remove(key) }
