package engine

import (
	"math"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pawlhq/pawl/ledger"
)

// tracker counts the objects that this engine's deliveries named and that
// are neither settled nor dead. Active ones have an entry. Parked ones have none: they
// back off, or another worker holds them. Sweeps bring back most parked objects, but
// not those that another worker settles, so the engine loads at the parked rows.
type tracker struct {
	active       int
	parked       *simplelru.LRU[ledger.RowKey, int] // the value of loads when each was parked
	loads        int                                // how many loads were asked for
	asked        bool                               // a look has no answer yet
	sourcesEnded bool                               // no delivery follows
	next         time.Time                          // of the next look
}

func newTracker() tracker {
	parked, _ := simplelru.NewLRU[ledger.RowKey, int](math.MaxInt, nil) // fails only for a size below one
	return tracker{parked: parked}
}

func (t *tracker) unsettled() int { return t.active + t.parked.Len() }

// track counts an object that a delivery named.
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

// park keeps the key of an unsettled object whose entry is dropped.
func (t *tracker) park(en *entry) {
	if en.tracked {
		t.parked.Add(en.key, t.loads)
		t.untrack(en)
	}
}

// resume tracks a parked object again that has a new entry.
func (t *tracker) resume(en *entry) {
	if t.parked.Remove(en.key) {
		t.track(en)
	}
}

// wantsLoad reports whether the parked rows should be looked at: all of them when no
// delivery follows. Before that a look only serves to forget the objects that other
// workers have settled, once more than limit are parked.
func (t *tracker) wantsLoad(limit int) bool {
	if t.asked {
		return false
	}
	if t.sourcesEnded {
		return t.parked.Len() > 0
	}
	return t.parked.Len() > limit
}

// look returns the next keys to look at, at most limit. The keys take turns.
func (t *tracker) nextKeys(limit int) []ledger.RowKey {
	t.asked = true
	t.loads++
	keys := make([]ledger.RowKey, min(t.parked.Len(), limit))
	for i := range keys {
		keys[i], _, _ = t.parked.GetOldest()
		t.parked.Get(keys[i]) // which makes it the last
	}
	return keys
}

// answered ends a look, and plans the next.
func (t *tracker) answered(next time.Time) { t.asked, t.next = false, next }

// parkedBeforeLoad reports whether an object has been parked since before the last look. The
// engine knows other objects better than the answer.
func (t *tracker) parkedBeforeLoad(key ledger.RowKey) bool {
	loads, parked := t.parked.Peek(key)
	return parked && loads < t.loads
}

// drop forgets a parked object.
func (t *tracker) drop(key ledger.RowKey) { t.parked.Remove(key) }
