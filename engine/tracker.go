package engine

import (
	"math"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pawlhq/pawl/ledger"
)

// tracker counts the delivered objects that are neither settled nor dead. Parked objects have no
// entry. Sweeps do not return the objects that another worker settles, so the engine also loads
// parked rows.
type tracker struct {
	active       int
	parked       *simplelru.LRU[ledger.RowKey, int] // loads at the time of parking
	loads        int
	asked        bool
	sourcesEnded bool
	next         time.Time // of the next load
}

func newTracker() tracker {
	parked, _ := simplelru.NewLRU[ledger.RowKey, int](math.MaxInt, nil) // fails only for a size below one
	return tracker{parked: parked}
}

func (t *tracker) unsettled() int { return t.active + t.parked.Len() }

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

func (t *tracker) park(en *entry) {
	if en.tracked {
		t.parked.Add(en.key, t.loads)
		t.untrack(en)
	}
}

func (t *tracker) resume(en *entry) {
	if t.parked.Remove(en.key) {
		t.track(en)
	}
}

// wantsLoad reports whether to load parked rows. A load forgets the objects that other workers
// settled. Before the sources end, wantsLoad only limits the number of parked objects.
func (t *tracker) wantsLoad(limit int) bool {
	if t.asked {
		return false
	}
	if t.sourcesEnded {
		return t.parked.Len() > 0
	}
	return t.parked.Len() > limit
}

// nextKeys returns parked keys in rotation.
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

// The answer of a load may be out of date for objects parked after the request.
func (t *tracker) parkedBeforeLoad(key ledger.RowKey) bool {
	loads, parked := t.parked.Peek(key)
	return parked && loads < t.loads
}

func (t *tracker) drop(key ledger.RowKey) { t.parked.Remove(key) }
