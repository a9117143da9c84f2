package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// entry is one object that something is happening to.
type entry struct {
	key ledger.RowKey
	row ledger.Row // as last known; without a nonce: taken to be absent

	// The intents.
	observe []observation
	finish  *Finished
	renew   bool

	attempt *ledger.Claim // running
	index   int           // in Engine.running
	renewAt time.Time
	endsAt  time.Time // when its context ends, unless the lease is renewed
	slot    slot

	tracked bool      // by Engine.tracker
	since   time.Time // when it was found to need a claim, for reports
	began   time.Time // when its attempt was granted, for reports

	pending *pendingSwap
	waiting []observation // AckSettled: raised, not yet settled
	queued  [queues]bool
}

// observation is an item of a delivery on its way into the row.
type observation struct {
	item     Item
	delivery *delivery
	verdict  ledger.Verdict
}

// entry finds or makes the entry of an object. A row from the cache, or none at
// all, is a guess that the swap will check.
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

// retire forgets an entry that nothing happens to. Its row is remembered.
func (e *Engine) drop(en *entry) {
	e.releaseWaiting(en)
	e.returnWaiting(en)
	e.park(en)
	if !en.row.Nonce.IsZero() {
		e.cache.Add(en.key, en.row)
	}
	delete(e.entries, en.key)
}

// begin and end keep the list of running attempts.
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

// route puts an entry where it belongs: among those with intents, those that
// wait for a slot, or nowhere.
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

// claimable reports whether a claim would change the row now. Due knows only of
// the lease where there is one; but where a clock was put back in mid-attempt,
// the lease may be over before the back-off is.
func claimable(row *ledger.Row, now time.Time) bool {
	due := row.Due()
	return !due.IsZero() && !due.After(now) && !row.RetryAt.After(now)
}
