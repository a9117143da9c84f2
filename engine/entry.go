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
	place   int           // in Engine.running
	renewAt time.Time
	endsAt  time.Time // when its context ends, unless the lease is renewed
	slot    bool      // holds one of the engine's slots, from its claim to its task's end
	size    int64
	alone   bool // nothing else may run meanwhile

	own   bool      // a delivery of this engine's named it
	since time.Time // when it was found to need a claim, for reports
	began time.Time // when its attempt was granted, for reports

	flight  *flight
	waiting []observation // AckSettled: raised, not yet settled
	queued  [queues]bool
}

// observation is an item of a delivery on its way into the row.
type observation struct {
	item     Item
	delivery *delivery
	verdict  ledger.Verdict
}

// flight is a swap on its way: what it will have done when it is applied.
type flight struct {
	next     ledger.Row
	observed []observation
	finish   *Finished
	refused  bool // the attempt no longer had its lease
	renewed  bool
	claim    *ledger.Claim
	retired  bool
	at       time.Time
}

// Which queue an entry is in. It can be in both.
const (
	dirty = iota
	ready
	queues
)

// queue is a first-in, first-out list of entries, each in it at most once.
type queue struct {
	which int
	items []*entry
}

func (q *queue) push(en *entry) {
	if !en.queued[q.which] {
		en.queued[q.which] = true
		q.items = append(q.items, en)
	}
}

// pop returns nil when the queue is empty. append leaves
// popped entries behind when it moves the slice, so a queue that is never empty does
// not grow.
func (q *queue) pop() *entry {
	en := q.peek()
	if en != nil {
		q.items[0] = nil
		q.items = q.items[1:]
		en.queued[q.which] = false
	}
	return en
}

// peek returns what pop would.
func (q *queue) peek() *entry {
	if q.empty() {
		return nil
	}
	return q.items[0]
}

func (q *queue) empty() bool { return len(q.items) == 0 }

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
		e.rejoin(en)
	}
	return en
}

// retire forgets an entry that nothing happens to. Its row is remembered.
func (e *Engine) retire(en *entry) {
	e.settled(en)
	e.handBack(en)
	e.leave(en)
	if !en.row.Nonce.IsZero() {
		e.cache.Add(en.key, en.row)
	}
	delete(e.entries, en.key)
}

// begin and end keep the list of running attempts.
func (e *Engine) begin(en *entry, a *ledger.Claim) {
	en.attempt, en.place = a, len(e.running)
	e.running = append(e.running, en)
}

func (e *Engine) end(en *entry) {
	if en.attempt == nil {
		return
	}
	last := e.running[len(e.running)-1]
	e.running[en.place], last.place = last, en.place
	e.running = e.running[:len(e.running)-1]
	en.attempt, en.renewAt = nil, time.Time{}
}

// route puts an entry where it belongs: among those with intents, those that
// wait for a slot, or nowhere.
func (e *Engine) route(en *entry) {
	switch {
	case en.flight != nil:
	case en.hasIntents():
		e.dirty.push(en)
	case en.attempt != nil:
	case !e.draining && claimable(&en.row, e.now) && e.leavesToSweep(en):
		e.retire(en)
	case !e.draining && claimable(&en.row, e.now):
		e.lane(en.key).ready.push(en)
	default:
		e.retire(en)
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
