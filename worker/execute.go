package worker

import (
	"errors"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/ledger"
)

type running struct {
	fence int64
	*lease
}

// execute never blocks.
func (w *Worker) execute(a engine.Action) {
	switch a := a.(type) {
	case engine.Swap:
		w.wg.Go(func() {
			w.asked()
			out, err := w.ledger.Swap(w.hard, a.Changes)
			w.answered(err)
			w.send(engine.Swapped{Batch: a.Batch, Outcomes: out})
		})
	case engine.Start:
		w.start(&a)
	case engine.Extend:
		if t := w.task(a.Key, a.Fence); t != nil {
			t.extend(a.Deadline)
		}
	case engine.Cancel:
		if t := w.task(a.Key, a.Fence); t != nil {
			t.cancel(ErrLeaseLost)
		}
	case engine.Answer:
		w.answer(&a)
	case engine.Sweep:
		w.wg.Go(func() { w.sweep(&a) })
	case engine.Load:
		w.wg.Go(func() { w.load(&a) })
	case engine.Notice:
		w.traceNotice(&a)
		w.observers.Observe(a)
	}
}

func (w *Worker) task(key ledger.RowKey, fence int64) *running {
	if t := w.tasks[key]; t != nil && t.fence == fence {
		return t
	}
	return nil
}

func (w *Worker) start(a *engine.Start) {
	held := newLease(w.base, a.Deadline)
	w.tasks[a.Claim.Key] = &running{fence: a.Claim.Fence, lease: held}
	claim, p := a.Claim, w.pipelines[a.Claim.Key.Pipeline]
	ctx, tracer, traceparent := w.traceAttempt(held, a)
	w.wg.Go(func() {
		// The handler may end its goroutine, as a test's FailNow does.
		fin := engine.Finished{
			Key: claim.Key, Fence: claim.Fence, Result: engine.Failed, Ending: ledger.Ending{Sent: true, Unsure: true},
			Failure: ledger.Failure{Message: "the handler ended its goroutine"}, Transactional: p.Transactional,
		}
		defer func() { w.send(fin) }()
		x := &Attempt{
			Ledger: w.ledger, Objects: w.cfg.Objects, Pipeline: p,
			Claim: claim, Nonce: process.Nonce, Now: time.Now, FailAfter: w.cfg.FailAfter, Tracer: tracer, Traceparent: traceparent,
		}
		fin = x.Run(ctx)
	})
}

func (w *Worker) endTask(f *engine.Finished) {
	if t := w.task(f.Key, f.Fence); t != nil {
		t.end()
		delete(w.tasks, f.Key)
		w.traceCompletion(f)
	}
}

// asked notes a request to the ledger.
func (w *Worker) asked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.health.Unanswered.IsZero() {
		w.health.Unanswered = time.Now()
	}
}

// answered notes an answer of the ledger. It stops the worker if the ledger is unusable, because
// results can no longer be stored.
func (w *Worker) answered(err error) {
	if err == nil {
		w.mu.Lock()
		w.health.LastAnswer, w.health.Unanswered = time.Now(), time.Time{}
		w.mu.Unlock()
	}
	if errors.Is(err, ledger.ErrUnusable) {
		w.endCalls(err)
	}
}

func (w *Worker) sweep(a *engine.Sweep) {
	w.asked()
	rows, err := w.ledger.Due(w.hard, a.Pipeline, a.Before, a.Limit)
	w.answered(err)
	if err != nil && w.hard.Err() == nil {
		w.warnings.sweep[a.Pipeline].Log(w.hard, "query for due rows failed; retrying", "pipeline", a.Pipeline, "error", err)
	}
	if err == nil && w.due != nil {
		w.due(a.Pipeline)
	}
	w.send(engine.Swept{Pipeline: a.Pipeline, Rows: rows, Failed: err != nil})
}

func (w *Worker) load(a *engine.Load) {
	w.asked()
	rows, err := w.ledger.Load(w.hard, a.Keys)
	w.answered(err)
	if err != nil {
		if w.hard.Err() == nil {
			w.warnings.load.Log(w.hard, "load of unsettled rows failed; retrying", "objects", len(a.Keys), "error", err)
		}
		w.send(engine.Loaded{})
		return
	}
	w.send(engine.Loaded{Keys: a.Keys, Rows: rows})
}
