package engine

import (
	"math"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pawlhq/pawl/ledger"
)

// own is the account of the objects that this engine's deliveries named and that
// are neither settled nor dead. Those with an entry are only counted. The others
// back off, or another worker holds them. Sweeps bring back most of these, but
// not what another worker settles, so that they are looked at.
type own struct {
	busy   int                                // with an entry
	left   *simplelru.LRU[ledger.RowKey, int] // without one, and how many looks there were then
	noMore bool
	asked  bool
	looks  int
	next   time.Time // of the next look
}

func newOwn() own {
	left, _ := simplelru.NewLRU[ledger.RowKey, int](math.MaxInt, nil) // fails only for a size below one
	return own{left: left}
}

// Unsettled returns how many objects that deliveries named are neither settled
// nor dead. An engine that never sweeps gives up those that it cannot settle.
func (e *Engine) Unsettled() int { return e.own.busy + e.own.left.Len() }

// Rested reports that every delivery is answered, and every object that one
// named settled or dead. Objects that only sweeps brought do not count. After
// [SweepOnce] it reports instead that every due row was read and processed.
func (e *Engine) Rested() bool {
	if e.once {
		return e.sweptOnce()
	}
	return e.Unsettled() == 0 && len(e.deliveries) == 0
}

// addOwn counts an object that a delivery named.
func (e *Engine) addOwn(en *entry) {
	if !en.own {
		en.own = true
		e.own.busy++
	}
}

func (e *Engine) dropOwn(en *entry) {
	if en.own {
		en.own = false
		e.own.busy--
	}
}

// leave keeps the key of an unsettled object whose entry goes.
func (e *Engine) leave(en *entry) {
	if en.own && e.cfg.Sweep > 0 {
		e.own.left.Add(en.key, e.own.looks)
	}
	e.dropOwn(en)
}

// rejoin is leave undone, for an entry that is made anew.
func (e *Engine) rejoin(en *entry) {
	if e.own.left.Remove(en.key) {
		e.addOwn(en)
	}
}

// looking reports that the objects left are to be looked at: all of them when no
// delivery follows. Before that a look only serves to forget those that other
// workers have settled, once the keys take more room than the cached rows.
func (e *Engine) looking() bool {
	o := &e.own
	if o.asked || e.draining {
		return false
	}
	if o.noMore {
		return o.left.Len() > 0
	}
	return o.left.Len() > e.cfg.Cache && e.cfg.Sweep > 0
}

// look asks for a batch of the objects left, in turn.
func (e *Engine) look() {
	o := &e.own
	if !e.looking() || o.next.After(e.now) {
		return
	}
	o.asked = true
	o.looks++
	keys := make([]ledger.RowKey, min(o.left.Len(), e.cfg.Batch))
	for i := range keys {
		keys[i], _, _ = o.left.GetOldest()
		o.left.Get(keys[i]) // which makes it the last
	}
	e.emit(Look{Keys: keys})
}

// looked takes the rows of objects left. One that something has happened to
// since the look was asked for is known better here. A key without a row was
// purged, which only a settled one is.
func (e *Engine) looked(in *Looked) {
	e.own.asked = false
	e.own.next = e.jittered()
	rows := make(map[ledger.RowKey]*ledger.Row, len(in.Rows))
	for i := range in.Rows {
		rows[in.Rows[i].RowKey] = &in.Rows[i]
	}
	for _, key := range in.Keys {
		if looks, left := e.own.left.Peek(key); !left || looks == e.own.looks {
			continue
		}
		row := rows[key]
		if row == nil {
			row = &ledger.Row{RowKey: key}
		}
		if row.Unreadable != nil {
			e.unreadable(row)
			e.own.left.Remove(key) // nothing will be done about it here
			continue
		}
		e.adopt(row)
	}
}
