package engine

import "github.com/pawlhq/pawl/ledger"

// Unsettled returns how many objects that deliveries named are neither settled
// nor dead. An engine that never sweeps gives up those that it cannot settle.
func (e *Engine) Unsettled() int { return e.tracker.unsettled() }

// AllSettled reports that every delivery is answered, and every object that one
// named settled or dead. Objects that only sweeps brought do not count. After
// [SweepOnce] it reports instead that every due row was read and processed.
func (e *Engine) AllSettled() bool {
	if e.sweepOnce {
		return e.sweptOnce()
	}
	return e.Unsettled() == 0 && len(e.deliveries) == 0
}

// park keeps the key of an unsettled object whose entry is dropped. An engine that never
// sweeps gives the object up.
func (e *Engine) park(en *entry) {
	if e.cfg.SweepInterval > 0 {
		e.tracker.park(en)
	}
	e.tracker.untrack(en)
}

func (e *Engine) loadsParked() bool { return !e.draining && e.tracker.wantsLoad(e.cfg.Cache) }

// look asks for a batch of the parked rows.
func (e *Engine) loadParked() {
	if e.loadsParked() && !e.tracker.next.After(e.now) {
		e.emit(Load{Keys: e.tracker.nextKeys(e.cfg.Batch)})
	}
}

// looked takes the rows of parked objects. If something has happened to an object
// since the look was asked for, the engine knows it better. A key without a row was
// purged, which happens to settled rows only.
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
