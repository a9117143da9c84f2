package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

type entry struct {
	key ledger.RowKey
	row ledger.Row // last known; without a nonce, the engine assumes that there is no row

	observe []observation
	finish  *Finished
	renew   bool

	attempt *ledger.Claim // nil: none
	index   int           // in Engine.running
	renewAt time.Time
	endsAt  time.Time // end of the lease, unless it is renewed
	slot    slot

	tracked bool      // counted by Engine.tracker
	since   time.Time // when the object began to need a claim
	began   time.Time // when the attempt was granted
	traces  []string  // of deliveries since the last attempt; at most maxTraces

	pending *pendingSwap
	waiting []observation // with AckSettled: raised Want, not settled yet
	queued  [queues]bool
}

type observation struct {
	item     Item
	delivery *delivery
	verdict  ledger.Verdict
}

// A new entry starts from the cached row, or from none. If the guess is wrong, the ledger refuses
// the swap.
func (e *Engine) entry(key ledger.RowKey) *entry {
	en := e.entries[key]
	if en == nil {
		en = &entry{key: key}
		if row, ok := e.cache.Peek(key); ok {
			en.row = row
			e.cache.Remove(key)
		}
		en.row.RowKey = key
		e.entries[key] = en
		e.tracker.resume(en)
	}
	return en
}

func (e *Engine) drop(en *entry) {
	e.releaseWaiting(en)
	e.returnWaiting(en)
	e.park(en)
	if !en.row.Nonce.IsZero() {
		e.cache.Add(en.key, en.row)
	}
	delete(e.entries, en.key)
}

func (e *Engine) addRunning(en *entry, a *ledger.Claim) {
	en.attempt, en.index = a, len(e.running)
	e.running = append(e.running, en)
}

func (e *Engine) removeRunning(en *entry) {
	if en.attempt == nil {
		return
	}
	last := e.running[len(e.running)-1]
	e.running[en.index], last.index = last, en.index
	e.running = e.running[:len(e.running)-1]
	en.attempt, en.renewAt = nil, time.Time{}
}

func (e *Engine) route(en *entry) {
	switch {
	case en.pending != nil:
	case en.hasIntents():
		e.dirty.push(en)
	case en.attempt != nil:
	case !e.draining && claimable(&en.row, e.now) && e.leavesToSweep(en):
		e.drop(en)
	case !e.draining && claimable(&en.row, e.now):
		e.lane(en.key).ready.push(en)
	default:
		e.drop(en)
	}
}

func (en *entry) hasIntents() bool { return len(en.observe) > 0 || en.finish != nil || en.renew }

// If the clock was set back during an attempt, the lease can expire before the back-off ends, and
// Due returns only the lease's end.
func claimable(row *ledger.Row, now time.Time) bool {
	due := row.Due()
	return !due.IsZero() && !due.After(now) && !row.RetryAt.After(now)
}
