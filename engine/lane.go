package engine

import "github.com/pawlhq/pawl/ledger"

// lane is one pipeline's share of the slots. A pipeline is sure of some, whatever
// the others do; the rest go to whoever comes first.
type lane struct {
	ready   queue // entries that wait for a slot to claim
	running int   // slots that attempts hold
	// own is how many slots the pipeline has for itself; 0: it shares those of
	// Config.Tasks with others.
	own    int
	outage outage
}

func (e *Engine) addLane(pipeline string) *lane {
	l := &lane{ready: queue{which: ready}, own: e.cfg.Own[pipeline], outage: e.cfg.Outages[pipeline].copied()}
	e.lanes[pipeline] = l
	e.order = append(e.order, l)
	if l.own == 0 {
		e.sharers++
	}
	return l
}

func (e *Engine) lane(k ledger.RowKey) *lane {
	if l := e.lanes[k.Pipeline]; l != nil {
		return l
	}
	return e.addLane(k.Pipeline) // of a test
}

// sure is how many slots each pipeline that shares them is sure of: together half
// of them, and at least one each.
func (e *Engine) sure() int { return max(1, e.cfg.Tasks/(2*e.sharers)) }

// room reports that the pipeline may have one more slot.
func (e *Engine) room(l *lane) bool {
	if !l.open(e.now) {
		return false
	}
	if l.own > 0 {
		return l.running < l.own
	}
	sure := e.sure()
	if l.running < sure || e.sharers == 1 && l.running < e.cfg.Tasks {
		return true
	}
	open := e.cfg.Tasks - e.sharers*sure // slots outside every sure share
	for _, other := range e.order {
		if other.own == 0 {
			open -= max(0, other.running-sure)
		}
	}
	return open > 0
}

// leavesToSweep reports that an object that could wait for a slot need not: enough
// of its pipeline do, its row is in the ledger, and no message waits for it. Else
// one slow pipeline would take all the room that there is for work. In an outage
// one object is enough, and messages are handed back.
func (e *Engine) leavesToSweep(en *entry) bool {
	if l := e.lane(en.key); l.outage.active() {
		first := e.first(l)
		return first != nil && first != en
	}
	return e.cfg.Waiting > 0 && e.cfg.Sweep > 0 && !en.queued[ready] && len(en.waiting) == 0 && !en.row.Nonce.IsZero() &&
		len(e.lane(en.key).ready.items) >= e.cfg.Waiting
}

// take reserves a slot for an attempt at row.
func (e *Engine) take(en *entry, row *ledger.Row) bool {
	l := e.lane(en.key)
	if !e.fits(l, row) {
		return false
	}
	en.slot, en.size, en.alone = true, row.Want.Identity.Size, e.quarantined(row)
	l.running++
	e.slots++
	e.bytes += en.size
	if en.alone {
		e.alone, e.aloneUntil = true, e.now.Add(e.cfg.Policy.TTL)
	}
	return true
}

// takeFirst is take for the first of its lane, which leaves it.
func (e *Engine) takeFirst(en *entry) bool {
	l := e.lane(en.key)
	l.ready.pop()
	if e.take(en, &en.row) {
		return true
	}
	l.ready.push(en)
	return false
}

// give frees a slot, if the entry holds one.
func (e *Engine) give(en *entry) {
	if en.slot {
		e.alone = e.alone && !en.alone
		en.slot, en.alone = false, false
		e.lane(en.key).running--
		e.slots--
		e.bytes -= en.size
	}
}

// fits reports that there is a slot for an attempt at row. An object larger than
// what is left of the bytes runs where nothing else of its pipeline does.
func (e *Engine) fits(l *lane, row *ledger.Row) bool {
	switch {
	case !l.open(e.now):
		return false
	case e.quarantined(row):
		return e.slots == 0
	case e.alone && e.now.Before(e.aloneUntil), e.waitsAlone():
		return false
	case e.slots == 0:
		return true
	case !e.room(l):
		return false
	}
	return l.running == 0 || row.Want.Identity.Size <= e.cfg.Bytes-e.bytes
}

// quarantined reports that row runs alone, as it may be what kills the processes
// that it runs in: half of its attempts are used up, and the last one ended with
// its worker. Else the objects that are claimed together with a poisonous one
// would use their attempts up with it, and die of it. That holds across pipelines:
// beside a poison of another one, which is not in quarantine yet, it would die too.
func (e *Engine) quarantined(row *ledger.Row) bool {
	return row.Held() && 2*row.Attempts >= e.cfg.Policy.Attempts
}

// waitsAlone reports that a quarantined object is next in its lane, where nothing
// else runs: other lanes begin nothing until it has begun alone. It does not hold
// them up while its own lane is busy, or while another quarantined object runs.
func (e *Engine) waitsAlone() bool {
	if e.alone {
		return false
	}
	for _, l := range e.order {
		if en := e.first(l); en != nil && l.running == 0 && l.open(e.now) && e.quarantined(&en.row) {
			return true
		}
	}
	return false
}

// first returns the first of a lane that waits for a slot and may begin next. It
// drops the entries that wait no more. While a quarantined object runs for more than
// one TTL, it leaves others in quarantine to the sweep, so that they do not hold up
// their lane.
func (e *Engine) first(l *lane) *entry {
	for range len(l.ready.items) {
		en := l.ready.peek()
		deferred := e.alone && !e.now.Before(e.aloneUntil) && e.quarantined(&en.row)
		if e.waits(en) && !deferred {
			return en
		}
		l.ready.pop()
		switch {
		case !e.waits(en):
		case e.cfg.Sweep > 0 && len(en.waiting) == 0:
			e.retire(en)
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

// waits reports that an entry taken from the ready queue still waits for a
// slot, and for nothing else.
func (e *Engine) waits(en *entry) bool {
	return e.entries[en.key] == en && en.flight == nil && en.attempt == nil && !en.hasIntents()
}
