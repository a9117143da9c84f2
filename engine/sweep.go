package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

type sweep struct {
	pipeline string
	lane     *lane
	next     time.Time
	asked    bool
	limit    int
	answered bool
	complete bool // with SweepOnce: an answer had all due rows
	// Unreadable rows stay due and would fill every answer, so the next sweep asks for twice that
	// number more.
	unreadable int
}

// maxSwept does not count unreadable rows.
const maxSwept = 500

// maxUnreadable bounds the extra rows. More unreadable rows block the sweep.
const maxUnreadable = 10_000

func (s *sweep) due(now time.Time) bool { return !s.asked && !s.complete && !s.next.After(now) }

func (s *sweep) begin(attempts int) int {
	s.asked = true
	s.limit = min(maxSwept, max(attempts, 1)) + min(2*s.unreadable, maxUnreadable)
	return s.limit
}

type sweepAnswer struct {
	failed     bool
	rows       int
	unreadable int
	adopted    int // in need of processing
}

// After a full answer, the engine sweeps again at once, unless no row needs processing: the next
// answer would have the same rows.
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

// While objects of the pipeline wait for a slot, no slot is free for more.
func (e *Engine) sweeping(l *lane) bool {
	return e.cfg.SweepInterval > 0 && !e.draining && l.ready.empty() && e.room(l)
}

func (e *Engine) sweepAll() {
	for i := range e.sweeps {
		if s := &e.sweeps[i]; s.due(e.now) && e.sweeping(s.lane) {
			e.emit(Sweep{Pipeline: s.pipeline, Before: e.now, Limit: s.begin(max(s.lane.share.reserved, e.cfg.Tasks))})
		}
	}
}

// A pipeline whose receiver is down counts as done after one answer.
func (e *Engine) sweptOnce() bool {
	for i := range e.sweeps {
		if s := &e.sweeps[i]; !s.complete && !(s.answered && s.lane.outage.active()) {
			return false
		}
	}
	return e.Idle()
}

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

// Workers that started together must spread their queries.
func (e *Engine) jittered() time.Time {
	return e.now.Add(e.cfg.SweepInterval/2 + time.Duration(e.cfg.Rand.Float64()*float64(e.cfg.SweepInterval)))
}

// A store may answer from an older snapshot, so swept ignores a row if the cached one was updated
// later. That time may come from a wrong clock, so swept drops the cached row, and the next sweep
// decides.
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
