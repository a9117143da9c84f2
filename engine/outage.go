package engine

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// Shared marks a failure that is an outage if enough objects of the pipeline have it.
type Shared struct {
	Cause   string // equal for failures of one kind
	Objects int    // must fail without a success in between; 0: not shared
}

// Outages is the known state of receivers, by pipeline, for the next engine of the process.
type Outages map[string]outage

// Outages returns a copy of the current state.
func (e *Engine) Outages() Outages {
	all := make(Outages, len(e.order))
	for name, l := range e.lanes {
		all[name] = l.outage.clone()
	}
	return all
}

// A continued outage begins with a probe.
func (o outage) clone() outage {
	met := make(map[string][]ledger.RowKey, len(o.met))
	for cause, keys := range o.met {
		met[cause] = slices.Clone(keys)
	}
	o.met, o.probeAt = met, time.Time{}
	return o
}

type outage struct {
	met     map[string][]ledger.RowKey // since the last success, by cause
	since   time.Time                  // zero: no outage
	probeAt time.Time                  // earliest time of the next attempt
	probes  int                        // failed since the start
	ended   time.Time
}

func (o *outage) active() bool { return !o.since.IsZero() }

// During an outage, one object at a time probes the receiver, after a back-off.
func (l *lane) permitsAttempt(now time.Time) bool {
	return !l.outage.active() || l.share.running == 0 && !l.outage.probeAt.After(now)
}

// Failures during an outage are not counted until it has lasted for Config.Outage. Without this
// limit, two objects that always fail could prolong it forever. A failed attempt from before the
// end of the last outage does not count either.
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

func (e *Engine) backOff(o *outage, in *Finished) {
	o.probes++
	o.probeAt = e.now.Add(max(e.cfg.Policy.OutageBackoff(o.probes, e.cfg.Rand.Float64()), in.Failure.After))
}

// unqueue keeps only the next probe. Sweeps return the oldest rows first, so probes rotate.
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
