package engine

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// Shared marks a failure that lies with the receiver, and not with the object, if
// enough objects of the pipeline meet it.
type Shared struct {
	Cause   string // equal for failures of one kind
	Objects int    // how many objects must meet Cause without a success between; 0: the failure is not shared
}

// Outages is what an engine knows of the receivers of its pipelines, by pipeline. The next
// engine of the same process can continue with it.
type Outages map[string]outage

// Outages returns a copy of what the engine knows now.
func (e *Engine) Outages() Outages {
	all := make(Outages, len(e.order))
	for name, l := range e.lanes {
		all[name] = l.outage.clone()
	}
	return all
}

// copied returns a copy. An outage that continues elsewhere begins with a probe.
func (o outage) clone() outage {
	met := make(map[string][]ledger.RowKey, len(o.met))
	for cause, keys := range o.met {
		met[cause] = slices.Clone(keys)
	}
	o.met, o.probeAt = met, time.Time{}
	return o
}

// outage is what an engine knows of the receiver of one pipeline. Other processes
// find out for themselves.
type outage struct {
	met     map[string][]ledger.RowKey // the objects that met each cause since the last success
	since   time.Time                  // when the outage began; zero: there is none
	probeAt time.Time                  // when the next attempt may begin
	probes  int                        // failed attempts since the outage began
	ended   time.Time                  // when the last outage ended
}

func (o *outage) active() bool { return !o.since.IsZero() }

// open reports whether an outage, if there is one, permits an attempt now: one
// object at a time, after a back-off, probes the receiver.
func (l *lane) permitsAttempt(now time.Time) bool {
	return !l.outage.active() || l.share.running == 0 && !l.outage.probeAt.After(now)
}

// noteReceiver learns from the end of an attempt whether the receiver of its
// pipeline works. Failures in an outage are not counted until it has lasted for
// Config.Outage. Otherwise two objects that always fail could keep it up forever.
// An attempt that began before an outage ended met that outage, and begins no other.
func (e *Engine) noteReceiver(in *Finished, began time.Time) {
	l := e.lane(in.Key)
	o := &l.outage
	switch {
	case in.Result == Completed && in.Acted:
		if o.active() {
			e.emit(Notice{Kind: ReceiverUp, Key: ledger.RowKey{Pipeline: in.Key.Pipeline}, Took: e.now.Sub(o.since)})
			o.ended = e.now
		}
		*o = outage{ended: o.ended}
		return
	case in.Result != Failed || in.Shared.Objects == 0:
		return
	case !o.active() && began.Before(o.ended):
		in.Failure.Uncounted = true
		return
	case !o.active():
		if !o.recordFailure(in) {
			return
		}
		o.since = e.now
		e.emit(Notice{Kind: ReceiverDown, Key: ledger.RowKey{Pipeline: in.Key.Pipeline}, Detail: in.Failure.Message})
		e.backOff(o, in)
		e.unqueue(l)
	case !o.probeAt.After(e.now):
		e.backOff(o, in)
	}
	in.Failure.Uncounted = in.Failure.Uncounted || e.now.Before(o.since.Add(e.cfg.Outage))
}

// meets notes that an object met a cause, and reports whether enough objects have.
func (o *outage) recordFailure(in *Finished) bool {
	if o.met == nil {
		o.met = map[string][]ledger.RowKey{}
	}
	keys := o.met[in.Shared.Cause]
	if !slices.Contains(keys, in.Key) {
		keys = append(keys, in.Key)
		o.met[in.Shared.Cause] = keys
	}
	return len(keys) >= in.Shared.Objects
}

// backOff plans the next probe of a receiver that failed again.
func (e *Engine) backOff(o *outage, in *Finished) {
	o.probes++
	o.probeAt = e.now.Add(max(e.cfg.Policy.OutageBackoff(o.probes, e.cfg.Rand.Float64()), in.Failure.After))
}

// unqueue leaves to the ledger what waits for a slot when an outage begins, except
// for the first object, which is the next probe. Probes then rotate: a sweep returns
// first what has waited longest.
func (e *Engine) unqueue(l *lane) {
	first := e.first(l)
	l.ready.pop()
	for en := l.ready.pop(); en != nil; en = l.ready.pop() {
		if e.waits(en) {
			e.drop(en)
		}
	}
	if first != nil {
		l.ready.push(first)
	}
}
