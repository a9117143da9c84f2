package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

type lane struct {
	ready  queue // entries that wait for a slot
	share  *share
	outage outage
}

func (e *Engine) addLane(pipeline string) *lane {
	l := &lane{ready: queue{which: ready}, share: e.slots.addShare(e.cfg.Reserved[pipeline]), outage: e.cfg.Outages[pipeline].clone()}
	e.lanes[pipeline] = l
	e.order = append(e.order, l)
	return l
}

func (e *Engine) lane(k ledger.RowKey) *lane {
	if l := e.lanes[k.Pipeline]; l != nil {
		return l
	}
	return e.addLane(k.Pipeline) // in tests only
}

func (e *Engine) room(l *lane) bool { return l.permitsAttempt(e.now) && e.slots.room(l.share) }

// leavesToSweep drops an object from memory if too many objects of its pipeline wait for slots.
// Otherwise one slow pipeline would fill the backlog. During an outage only the next probe waits.
func (e *Engine) leavesToSweep(en *entry) bool {
	if l := e.lane(en.key); l.outage.active() {
		first := e.first(l)
		return first != nil && first != en
	}
	return e.cfg.Waiting > 0 && e.cfg.SweepInterval > 0 && !en.queued[ready] && len(en.waiting) == 0 && !en.row.Nonce.IsZero() &&
		len(e.lane(en.key).ready.items) >= e.cfg.Waiting
}

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

func (e *Engine) acquireFirst(en *entry) bool {
	l := e.lane(en.key)
	l.ready.pop()
	if e.acquireSlot(en, &en.row) {
		return true
	}
	l.ready.push(en)
	return false
}

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

// A quarantined attempt runs alone, in all pipelines. Half of its attempts are used up and the
// worker of the last one died, so the object may kill processes. Other objects that run at the same
// time would use up their attempts and become dead.
func (e *Engine) quarantined(row *ledger.Row) bool {
	return row.Held() && 2*row.Attempts >= e.cfg.Policy.Attempts
}

// quarantineWaits reports whether a quarantined object could start if no other attempt ran. The
// other lanes then wait until it has started. While the object's own lane is busy, they do not
// wait.
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

// While a quarantined object runs for more than one TTL, others are left to the sweep, so that they
// do not block their lane.
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

func (e *Engine) waits(en *entry) bool {
	return e.entries[en.key] == en && en.pending == nil && en.attempt == nil && !en.hasIntents()
}
