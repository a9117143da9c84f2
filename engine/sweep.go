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
	// unreadable is how many rows of the last answer could not be read. The next sweep
	// asks for twice as many more. Otherwise they would stand before all other rows for good.
	unreadable int
}

// maxSwept is the most rows asked for at a time.
const maxSwept = 500

// maxUnreadable is the most unreadable rows that a sweep passes over. Beyond that
// number they do stand before all others.
const maxUnreadable = 10_000

// due reports whether it is time to ask.
func (s *sweep) due(now time.Time) bool { return !s.asked && !s.complete && !s.next.After(now) }

// ask begins a sweep for as many attempts as can run, and returns the number of rows to ask for.
func (s *sweep) begin(attempts int) int {
	s.asked = true
	s.limit = min(maxSwept, max(attempts, 1)) + min(2*s.unreadable, maxUnreadable)
	return s.limit
}

// sweepAnswer is what a sweep returned.
type sweepAnswer struct {
	failed     bool
	rows       int
	unreadable int // of the rows
	adopted    int // rows with something to do about them
}

// take ends a sweep, and plans the next for the given time. A full answer means that there
// are more due rows, so the engine asks again at once, unless the answer brought nothing
// to do: the next one would bring the same rows.
func (s *sweep) finish(a sweepAnswer, once bool, now, next time.Time) {
	full := a.rows >= s.limit
	s.asked = false
	s.answered = s.answered || !a.failed
	s.complete = once && !a.failed && !full
	s.next = next
	if (a.adopted > 0 || a.unreadable > s.unreadable) && full {
		s.next = now
	}
	s.unreadable = a.unreadable
}

// sweeping reports whether a pipeline's due rows are wanted. They are not
// while objects of it wait for a slot, because no slot could claim them.
func (e *Engine) sweeping(l *lane) bool {
	return e.cfg.SweepInterval > 0 && !e.draining && l.ready.empty() && e.room(l)
}

// sweepAll asks for the due rows of each pipeline whose sweep is due.
func (e *Engine) sweepAll() {
	for i := range e.sweeps {
		if s := &e.sweeps[i]; s.due(e.now) && e.sweeping(s.lane) {
			e.emit(Sweep{Pipeline: s.pipeline, Before: e.now, Limit: s.begin(max(s.lane.share.reserved, e.cfg.Tasks))})
		}
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
// to do about it. The engine knows a row that has an entry better.
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

// jittered returns the time of the next sweep or look. The workers of a fleet
// that started together do not ask together.
func (e *Engine) jittered() time.Time {
	return e.now.Add(e.cfg.SweepInterval/2 + time.Duration(e.cfg.Rand.Float64()*float64(e.cfg.SweepInterval)))
}

// swept takes due rows. The engine knows rows with an entry better, and also
// a row of the cache that was written later: a store may answer
// from an older snapshot. But another worker with a slow clock may have written since.
// So the engine drops such a row from the cache, and the next sweep decides.
func (e *Engine) swept(in *Swept) {
	a := sweepAnswer{failed: in.Failed, rows: len(in.Rows)}
	for i := range in.Rows {
		row := &in.Rows[i]
		if row.Unreadable != nil {
			e.reportUnreadable(row)
			a.unreadable++
			continue
		}
		if known, ok := e.cache.Peek(row.RowKey); ok && known.UpdatedAt.After(row.UpdatedAt) {
			e.cache.Remove(row.RowKey)
			continue
		}
		if e.adopt(row) {
			a.adopted++
		}
	}
	for i := range e.sweeps {
		if s := &e.sweeps[i]; s.pipeline == in.Pipeline {
			s.finish(a, e.sweepOnce, e.now, e.jittered())
		}
	}
}
