package worker

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
)

// Tracer records deliveries and attempts as spans. Package metrics/otel implements it. A Tracer is
// safe for concurrent use and does not block.
type Tracer interface {
	// StartDelivery starts the span of a delivery with the given number of items. It returns the
	// span's W3C trace context.
	StartDelivery(m *source.Message, items int) (traceparent string, end func(error))
	// StartAttempt starts the span of an attempt whose claim was sent at asked and has landed now.
	// deliveries are the trace contexts of the deliveries that caused it. The result is one word, and
	// err is nil unless the attempt failed. A nil end means that the attempt is not sampled; then its
	// handler gets traceparent, and no step is started.
	StartAttempt(ctx context.Context, c *ledger.Claim, asked time.Time, deliveries []string) (_ context.Context, traceparent string, end func(result string, err error))
	// StartStep starts the span of a step of the attempt in ctx: pin, read, act, publish or complete.
	StartStep(ctx context.Context, name string) (_ context.Context, end func(error))
	// Traceparent returns the W3C trace context of the span in ctx.
	Traceparent(ctx context.Context) string
}

type trace struct {
	ctx         context.Context
	id          string
	fence       int64
	end         func(result string, err error)
	endComplete func(error) // nil while the task runs
}

func noSpan(error) {}

func (x *Attempt) step(ctx context.Context, name string) (context.Context, func(error)) {
	if x.Tracer == nil {
		return ctx, noSpan
	}
	return x.Tracer.StartStep(ctx, name)
}

func (w *Worker) traceDelivery(d *source.Delivery, items []engine.Item) (end func(error)) {
	if w.cfg.Tracer == nil {
		return nil
	}
	traceparent, end := w.cfg.Tracer.StartDelivery(&d.Message, len(items))
	for i := range items {
		items[i].Traceparent = traceparent
	}
	return end
}

// traceAttempt returns a nil Tracer if nothing of the attempt is recorded.
func (w *Worker) traceAttempt(ctx context.Context, a *engine.Start) (_ context.Context, steps Tracer, traceparent string) {
	if w.cfg.Tracer == nil {
		return ctx, nil, ""
	}
	ctx, traceparent, end := w.cfg.Tracer.StartAttempt(ctx, &a.Claim, a.Asked, a.Deliveries)
	if end == nil {
		return ctx, nil, traceparent
	}
	t := &trace{ctx: ctx, fence: a.Claim.Fence, end: end}
	if len(traceparent) > 35 {
		t.id = traceparent[3:35]
	}
	w.traces[a.Claim.Key] = t
	return ctx, w.cfg.Tracer, traceparent
}

func (w *Worker) traceCompletion(f *engine.Finished) {
	if t := w.traces[f.Key]; t != nil && t.fence == f.Fence {
		_, t.endComplete = w.cfg.Tracer.StartStep(t.ctx, "complete")
	}
}

// results has the result of each kind of notice that ends an attempt.
var results = map[engine.Kind]struct {
	name   string
	failed bool
}{
	engine.Committed: {"committed", false}, engine.NothingToDo: {"nothing_to_do", false}, engine.AttemptReleased: {"released", false},
	engine.AttemptFailed: {"failed", true}, engine.AttemptUncounted: {"uncounted", true}, engine.Died: {"dead", true},
	engine.LostLease: {"lost_lease", true}, engine.AttemptAbandoned: {"abandoned", true},
}

// traceNotice ends the span of an attempt that the notice ends, and sets the notice's TraceID.
func (w *Worker) traceNotice(n *engine.Notice) {
	if w.cfg.Tracer == nil {
		return
	}
	result, ends := results[n.Kind]
	if !ends && n.Kind != engine.TookOver {
		return
	}
	t := w.traces[n.Key]
	if t == nil {
		return
	}
	n.TraceID = t.id
	if !ends {
		return
	}
	delete(w.traces, n.Key)
	var err, unstored error
	if result.failed {
		err = errors.New(n.Detail)
	}
	if n.Kind == engine.LostLease || n.Kind == engine.AttemptAbandoned {
		unstored = err
	}
	if t.endComplete != nil {
		t.endComplete(unstored)
	}
	t.end(result.name, err)
}
