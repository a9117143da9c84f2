package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// lane is the queue of one pipeline.
type lane struct {
	ready  queue // entries that wait for a slot to claim
	share  *share
	outage outage
}

func (e *Engine) addLane(pipeline string) *lane {
	l := &lane{ready: queue{which: ready}, share: e.slots.addShare(e.cfg.Own[pipeline]), outage: e.cfg.Outages[pipeline].clone()}
	e.lanes[pipeline] = l
	e.order = append(e.order, l)
	return l
}

func (e *Engine) lane(k ledger.RowKey) *lane {
	if l := e.lanes[k.Pipeline]; l != nil {
		return l
	}
	return e.addLane(k.Pipeline) // of a test
}

// room reports whether the pipeline may have one more slot.
func (e *Engine) room(l *lane) bool { return l.permitsAttempt(e.now) && e.slots.room(l.share) }

// leavesToSweep reports whether an object that could wait for a slot need not: enough
// of its pipeline do, its row is in the ledger, and no message waits for it. Otherwise
// one slow pipeline would take all the room that there is for work. In an outage
// one object is enough, and messages are handed back.
func (e *Engine) leavesToSweep(en *entry) bool {
	if l := e.lane(en.key); l.outage.active() {
		first := e.first(l)
		return first != nil && first != en
	}
	return e.cfg.Waiting > 0 && e.cfg.SweepInterval > 0 && !en.queued[ready] && len(en.waiting) == 0 && !en.row.Nonce.IsZero() &&
		len(e.lane(en.key).ready.items) >= e.cfg.Waiting
}

// acquireSlot reserves a slot for an attempt at row, if one is free.
func (e *Engine) acquireSlot(en *entry, row *ledger.Row) bool {
	l := e.lane(en.key)
	if !e.fits(l, row) {
		return false
	}
	var quarantineEnd time.Time
	if e.quarantined(row) {
		quarantineEnd = e.now.Add(e.cfg.Policy.TTL)
	}
	en.slot = e.slots.acquire(l.share, row.Want.Identity.Size, quarantineEnd)
	return true
}

// acquireFirst is acquireSlot for the first entry of its lane, which leaves the lane.
func (e *Engine) acquireFirst(en *entry) bool {
	l := e.lane(en.key)
	l.ready.pop()
	if e.acquireSlot(en, &en.row) {
		return true
	}
	l.ready.push(en)
	return false
}

// fits reports whether there is a slot for an attempt at row.
func (e *Engine) fits(l *lane, row *ledger.Row) bool {
	switch {
	case !l.permitsAttempt(e.now):
		return false
	case e.quarantined(row):
		return e.slots.used == 0
	case e.slots.quarantines(e.now), e.quarantineWaits():
		return false
	}
	return e.slots.fits(l.share, row.Want.Identity.Size)
}

// quarantined reports whether row runs alone, because it may be what kills the processes
// that it runs in: half of its attempts are used up, and the last one ended with
// its worker. Otherwise the objects that are claimed together with a poisonous one
// would use up their attempts with it, and die of it. That holds across pipelines:
// beside a poison of another pipeline, which is not in quarantine yet, the row would die too.
func (e *Engine) quarantined(row *ledger.Row) bool {
	return row.Held() && 2*row.Attempts >= e.cfg.Policy.Attempts
}

// quarantineWaits reports whether a quarantined object is next in its lane, and nothing
// else of the lane runs: other lanes begin nothing until it has begun alone. It does not hold
// them up while its own lane is busy, or while another quarantined object runs.
func (e *Engine) quarantineWaits() bool {
	if e.slots.quarantine {
		return false
	}
	for _, l := range e.order {
		if en := e.first(l); en != nil && l.share.running == 0 && l.permitsAttempt(e.now) && e.quarantined(&en.row) {
			return true
		}
	}
	return false
}

// first returns the first entry of a lane that waits for a slot and may begin next. It
// drops the entries that wait no more. While a quarantined object runs for more than
// one TTL, it leaves others in quarantine to the sweep, so that they do not hold up
// their lane.
func (e *Engine) first(l *lane) *entry {
	for range len(l.ready.items) {
		en := l.ready.peek()
		deferred := e.slots.quarantineOverdue(e.now) && e.quarantined(&en.row)
		if e.waits(en) && !deferred {
			return en
		}
		l.ready.pop()
		switch {
		case !e.waits(en):
		case e.cfg.SweepInterval > 0 && len(en.waiting) == 0:
			e.drop(en)
		default:
			l.ready.push(en)
		}
	}
	return nil
}

// nextReady returns the next entry that can have a slot: pipelines take turns.
func (e *Engine) nextReady() *entry {
	for i := range e.order {
		l := e.order[(e.turn+i)%len(e.order)]
		if en := e.first(l); en != nil && e.fits(l, &en.row) {
			e.turn = (e.turn + i + 1) % len(e.order)
			return en
		}
	}
	return nil
}

// waits reports whether an entry taken from the ready queue still waits for a
// slot, and for nothing else.
func (e *Engine) waits(en *entry) bool {
	return e.entries[en.key] == en && en.pending == nil && en.attempt == nil && !en.hasIntents()
}
