package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// sweep is the state of asking for one pipeline's due rows.
type sweep struct {
	pipeline string
	lane     *lane
	next     time.Time
	asked    bool
	limit    int
	answered bool // the ledger has returned due rows, or that there are none
	complete bool // with SweepOnce: an answer held all rows that were due
	// odd is how many rows of the last answer could not be read. Twice as many more
	// are asked for, or they would stand before all others for good.
	odd int
}

// sweepMost is the most rows asked for at a time.
const sweepMost = 500

// sweepOdd bounds how many rows that cannot be read a sweep passes by: beyond it
// they do stand before all others.
const sweepOdd = 10_000

// sweeping reports that a pipeline's due rows are wanted. They are not
// while objects of it wait for a slot, because no slot could claim them.
func (e *Engine) sweeping(l *lane) bool {
	return e.cfg.Sweep > 0 && !e.draining && l.ready.empty() && e.room(l)
}

// sweepAll asks for due rows where it is time to.
func (e *Engine) sweepAll() {
	for i := range e.sweeps {
		s := &e.sweeps[i]
		if s.asked || s.complete || s.next.After(e.now) || !e.sweeping(s.lane) {
			continue
		}
		s.asked = true
		s.limit = min(sweepMost, max(s.lane.own, e.cfg.Tasks, 1)) + min(2*s.odd, sweepOdd)
		e.emit(Sweep{Pipeline: s.pipeline, Before: e.now, Limit: s.limit})
	}
}

// sweptOnce reports that all due rows of each pipeline were read and nothing happens to
// any of them. It does not wait for a pipeline whose receiver is down.
func (e *Engine) sweptOnce() bool {
	for i := range e.sweeps {
		if s := &e.sweeps[i]; !s.complete && !(s.answered && s.lane.outage.active()) {
			return false
		}
	}
	return e.Idle()
}

// adopt takes a row as the ledger has it, and reports whether there is anything
// to do about it. A row that something is happening to is known better here.
func (e *Engine) adopt(row *ledger.Row) bool {
	if e.draining || e.entries[row.RowKey] != nil {
		return false
	}
	en := e.entry(row.RowKey)
	en.row = *row
	en.since = e.now
	e.route(en)
	return e.entries[row.RowKey] == en
}

// jittered returns the time of the next sweep or look: the workers of a fleet
// that started together do not ask together.
func (e *Engine) jittered() time.Time {
	return e.now.Add(e.cfg.Sweep/2 + time.Duration(e.cfg.Rand.Float64()*float64(e.cfg.Sweep)))
}

// swept takes due rows. Those that something is happening to are known better
// here, and so is a row of the cache that was written later: a store may answer
// from an older picture. But another worker may have written since, by a clock
// that is behind; so the cache gives its row up, and the next sweep decides.
// A full answer means that there is more, and so that it is worth to ask
// again at once; unless it brought nothing to do, and would again.
func (e *Engine) swept(in *Swept) {
	fresh, odd := 0, 0
	for i := range in.Rows {
		row := &in.Rows[i]
		if row.Unreadable != nil {
			e.unreadable(row)
			odd++
			continue
		}
		if known, ok := e.cache.Peek(row.RowKey); ok && known.UpdatedAt.After(row.UpdatedAt) {
			e.cache.Remove(row.RowKey)
			continue
		}
		if e.adopt(row) {
			fresh++
		}
	}
	for i := range e.sweeps {
		s := &e.sweeps[i]
		if s.pipeline != in.Pipeline {
			continue
		}
		s.asked = false
		s.answered = s.answered || !in.Failed
		s.complete = e.once && !in.Failed && len(in.Rows) < s.limit
		s.next = e.jittered()
		if (fresh > 0 || odd > s.odd) && len(in.Rows) >= s.limit {
			s.next = e.now
		}
		s.odd = odd
	}
}
