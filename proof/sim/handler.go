package sim

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

type handler struct {
	thread *thread
	task   *task
	view   *storeView
	called bool
}

var errHandler = errors.New("random failure")

func (h *handler) Handle(ctx context.Context, t *worker.Task) error {
	if h.called {
		// The attempt starts over. It does not know which effects the handler has had.
		h.thread.world.oracleOf(h.task.key).repeatable = true
	}
	h.called = true
	body := ""
	if t.Kind == event.Created {
		var err error
		if body, err = read(ctx, t); err != nil {
			return err
		}
		if err := h.inject(poisonIn(body)); err != nil {
			return err
		}
	}
	if err := h.delayOrFail(ctx); err != nil {
		return err
	}
	if t.HasOutput() {
		out, err := t.Output("text/plain")
		if err != nil {
			return err
		}
		_, err = out.Write([]byte(f(body)))
		return err
	}
	if err := h.effect(t, body); err != nil || t.Kind != event.Created || !h.thread.world.Tape.Chance(h.thread.world.plan.rereads) {
		return err
	}
	h.thread.sleep(h.thread.world.Tape.UpTo(20 * time.Second))
	_, err := read(ctx, t) // detects changes of the object
	return err
}

func (h *handler) inject(p poison) error {
	switch p {
	case failing:
		return errHandler
	case hopeless:
		return worker.Permanent(errHandler)
	case killing:
		if n := h.thread.node; n.crashFreeUntil <= n.Now {
			n.crash()
		}
		return errHandler
	case panicking:
		panic("poison")
	}
	return nil
}

// delayOrFail may sleep until after the end of the lease.
func (h *handler) delayOrFail(ctx context.Context) error {
	w := h.thread.world
	calm := w.Now >= w.faultsEnd
	if !calm && w.Tape.Chance(w.plan.slow) {
		h.thread.sleep(w.Tape.UpTo(100 * time.Second))
		if ctx.Err() != nil && w.Tape.Chance(700) {
			return context.Cause(ctx)
		}
	}
	if !calm && w.Tape.Chance(w.plan.fails) {
		return simkit.Pick(w.Tape, errHandler, worker.RetryAfter(errHandler, 20*time.Second), worker.Permanent(errHandler),
			worker.OutageIfShared(errHandler, "down", 2))
	}
	return nil
}

// Only the fence protects an external effect.
func (h *handler) effect(t *worker.Task, body string) error {
	w := h.thread.world
	seen := h.view.inputVersions
	do := request(func() error {
		w.effectHappened(h.task, t, body, seen)
		return nil
	})
	if w.kindOf(h.task.key) == committing {
		c, err := t.Completion()
		if err != nil {
			return err
		}
		do = func() error { return h.commit(t, c, body, seen) }
	}
	fault := w.fault(h.thread, StepAct)
	if fault == simkit.Refused {
		return errHandler
	}
	answered, err := h.thread.send(fault, do)
	if !answered {
		return bucket.ErrUnclear
	}
	return err
}

// commit writes both the effect and the row, or neither.
func (h *handler) commit(t *worker.Task, c *ledger.Completion, body string, seen int) error {
	w, by := h.thread.world, h.task.node
	rows, err := w.store.Load(context.Background(), []ledger.RowKey{c.Claim.Key})
	if err != nil || len(rows) == 0 {
		return errors.Join(ledger.ErrNotHeld, err)
	}
	next, err := c.Apply(&rows[0])
	if err != nil {
		return err
	}
	w.effectHappened(h.task, t, body, seen)
	w.oracleOf(c.Claim.Key).committer = by
	w.swap(by, []ledger.Change{{Key: next.RowKey, Expect: rows[0].Nonce, Row: &next}})
	w.oracleOf(c.Claim.Key).committer = nil
	return nil
}

func read(ctx context.Context, t *worker.Task) (string, error) {
	in, err := t.Open(ctx)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return "", err
	}
	return string(b), in.Close()
}
