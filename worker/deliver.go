package worker

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/source"
)

// Deliver implements source.Sink.
func (w *Worker) Deliver(ctx context.Context, d source.Delivery) error { return w.accept(ctx, d, true) }

// TryDeliver implements source.Sink.
func (w *Worker) TryDeliver(d source.Delivery) error { return w.accept(context.Background(), d, false) }

func (w *Worker) accept(ctx context.Context, d source.Delivery, wait bool) error {
	items, unmatched, err := Route(w.cfg.Pipelines, &d)
	if err != nil {
		return err
	}
	od := &openDelivery{Delivery: d, pipelines: make([]string, len(items)), unmatched: unmatched, endSpan: w.traceDelivery(&d, items)}
	for i := range items {
		od.pipelines[i] = items[i].Key.Pipeline
	}
	if err := w.admission.enter(ctx, od.pipelines, wait); err != nil {
		if od.endSpan != nil {
			od.endSpan(err)
		}
		return err
	}
	id := w.lastID.Add(1)
	w.open.Store(id, od)
	w.send(engine.Deliver{ID: id, Items: items})
	return nil
}

// Route returns the rows that a delivery's events concern, and the number of events that match no
// pipeline. In event order, an event without a trusted sequencer is a [source.ErrUntrusted].
func Route(pipelines []*Pipeline, d *source.Delivery) (items []engine.Item, unmatched int, err error) {
	items = make([]engine.Item, 0, len(d.Events))
	for i := range d.Events {
		e := &d.Events[i]
		trusted := (e.Dialect.TrustsSequencer() || d.TrustSequencer) && !e.Sequencer.IsZero()
		matched := false
		for _, p := range pipelines {
			if p.Match(e.Object) && !p.isOldVersionRemoval(e) {
				matched = true
				if p.Order == EventOrder && !trusted {
					return nil, 0, fmt.Errorf("%s in %s: %w", e.Object, p.Name, source.ErrUntrusted)
				}
				items = append(items, engine.Item{Key: p.row(e.Object), Event: *e, Trusted: trusted})
			}
		}
		if !matched {
			unmatched++
		}
	}
	return items, unmatched, nil
}

func (w *Worker) answer(a *engine.Answer) {
	v, ok := w.open.LoadAndDelete(a.ID)
	if !ok {
		return
	}
	od := v.(*openDelivery)
	if od.unmatched > 0 && w.cfg.Observer != nil {
		w.cfg.Observer.Observe(engine.Notice{Kind: engine.Unmatched, N: od.unmatched})
	}
	od.Done(source.Outcome{
		Ack: a.Ack, RetryAfter: a.After, Err: a.Err,
		Verdicts: source.Verdicts{Raised: a.Raised, Duplicate: a.Duplicate, Stale: a.Stale, Unmatched: od.unmatched},
	})
	if od.endSpan != nil {
		od.endSpan(a.Err)
	}
	w.admission.leave(od.pipelines)
}
