package engine

import "github.com/pawlhq/pawl/ledger"

// Unsettled returns the number of delivered objects that are neither settled nor dead. Without
// sweeps, it omits returned objects.
func (e *Engine) Unsettled() int { return e.tracker.unsettled() }

// Running returns the number of attempts that run, and the total size of their objects.
func (e *Engine) Running() (attempts int, bytes int64) { return e.slots.used, e.slots.usedBytes }

// AllSettled reports whether every delivery is answered and every delivered object is settled or
// dead. After [SweepOnce] it reports whether every due row was processed.
func (e *Engine) AllSettled() bool {
	if e.sweepOnce {
		return e.sweptOnce()
	}
	return e.Unsettled() == 0 && len(e.deliveries) == 0
}

func (e *Engine) park(en *entry) {
	if e.cfg.SweepInterval > 0 {
		e.tracker.park(en)
	}
	e.tracker.untrack(en)
}

func (e *Engine) loadsParked() bool { return !e.draining && e.tracker.wantsLoad(e.cfg.Cache) }

func (e *Engine) loadParked() {
	if e.loadsParked() && !e.tracker.next.After(e.now) {
		e.emit(Load{Keys: e.tracker.nextKeys(e.cfg.Batch)})
	}
}

// A missing row was purged, so it was settled.
func (e *Engine) loaded(in *Loaded) {
	e.tracker.answered(e.jittered())
	rows := make(map[ledger.RowKey]*ledger.Row, len(in.Rows))
	for i := range in.Rows {
		rows[in.Rows[i].RowKey] = &in.Rows[i]
	}
	for _, key := range in.Keys {
		if !e.tracker.parkedBeforeLoad(key) {
			continue
		}
		row := rows[key]
		if row == nil {
			row = &ledger.Row{RowKey: key}
		}
		if row.Unreadable != nil {
			e.reportUnreadable(row)
			e.tracker.drop(key)
			continue
		}
		e.adopt(row)
	}
}
