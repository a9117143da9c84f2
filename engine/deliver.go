package engine

import (
	"errors"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

func (e *Engine) deliver(in *Deliver) {
	d := newDelivery(in, e.now)
	if d.open == 0 {
		e.emit(d.answer)
		e.emitAnswered(d)
		return
	}
	e.deliveries[in.ID] = d
	for _, item := range in.Items {
		en := e.entry(item.Key)
		if en.since.IsZero() {
			en.since = e.now
		}
		en.observe = append(en.observe, observation{item: item, delivery: d})
		e.route(en)
	}
}

const maxTraces = 16

// With AckSettled, an item that is not stale stays open until its object is settled or dead.
func (e *Engine) noteVerdict(en *entry, o observation) {
	if o.verdict == ledger.Disordered {
		o.verdict = ledger.Stale
		e.emit(Notice{Kind: Disordered, Key: en.key, Detail: "sequencer " + o.item.Event.Sequencer.Raw() + " after " + en.row.Want.Sequencer.Raw()})
	}
	if t := o.item.Traceparent; t != "" && o.verdict != ledger.Stale && len(en.traces) < maxTraces {
		en.traces = append(en.traces, t)
	}
	o.delivery.count(o.verdict, &e.Stats)
	e.emitMetric(Notice{Kind: verdictKinds[o.verdict], Key: en.key})
	e.tracker.track(en)
	if e.cfg.AckSettled && o.verdict != ledger.Stale && !en.row.Settled() && !en.row.Dead {
		en.waiting = append(en.waiting, o)
		return
	}
	e.closeItem(o.delivery)
}

func (e *Engine) releaseWaiting(en *entry) {
	if en.row.Settled() || en.row.Dead {
		for _, o := range en.waiting {
			e.closeItem(o.delivery)
		}
		en.waiting = nil
		e.tracker.untrack(en)
	}
}

var (
	errHeldElsewhere = errors.New("another worker is processing the object")
	errBackOff       = errors.New("the object failed and is backing off")
	errOutage        = errors.New("the pipeline's receiver is down")
	errStopping      = errors.New("the worker is shutting down")
	errUnreadable    = errors.New("the object's row cannot be read")
)

func (e *Engine) returnWaiting(en *entry) {
	for _, o := range en.waiting {
		after, err := time.Duration(0), errStopping
		switch {
		case en.row.Live(e.now):
			after, err = en.row.Lease.Until.Sub(e.now), errHeldElsewhere
		case en.row.RetryAt.After(e.now):
			after, err = en.row.RetryAt.Sub(e.now), errBackOff
		case e.lane(en.key).outage.active() && !e.draining:
			after, err = max(e.lane(en.key).outage.probeAt.Sub(e.now), 0), errOutage
		}
		e.returnItem(o.delivery, after, err)
	}
	en.waiting = nil
}

func (e *Engine) returnItem(d *delivery, after time.Duration, err error) {
	d.refuse(after, err)
	e.closeItem(d)
}

func (e *Engine) closeItem(d *delivery) {
	if d.close() {
		e.emit(d.answer)
		delete(e.deliveries, d.answer.ID)
		e.emitAnswered(d)
	}
}
