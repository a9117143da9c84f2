package engine

import "github.com/pawlhq/pawl/ledger"

// Unsettled returns the number of delivered objects that are neither settled nor dead. An
// engine without sweeps does not count objects that it returned.
func (e *Engine) Unsettled() int { return e.tracker.unsettled() }

// AllSettled reports whether every delivery is answered and every delivered object is
// settled or dead. It ignores objects that came from sweeps and not from a delivery. After
// [SweepOnce] it reports whether every due row was read and processed.
func (e *Engine) AllSettled() bool {
	if e.sweepOnce {
		return e.sweptOnce()
	}
	return e.Unsettled() == 0 && len(e.deliveries) == 0
}

// park tracks an unsettled object whose entry is dropped. An engine without sweeps stops
// tracking it.
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

// loaded handles the rows of parked objects. It ignores objects that changed after the
// request. A missing row was purged, so it was settled.
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
			e.tracker.drop(key) // this engine cannot process it
			continue
		}
		e.adopt(row)
	}
}
