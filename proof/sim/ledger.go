package sim

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
)

type ledgerView struct{ thread *thread }

var _ ledger.Store = (*ledgerView)(nil)

var (
	errNoAnswer = errors.New("the ledger did not answer")
	errNoRows   = errors.New("the ledger is temporarily down")
)

func (r *ledgerView) Swap(_ context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	t := r.thread
	if t.dead() {
		return nil, errNoAnswer
	}
	w, by := t.world, t.node // the thread may have another process when the swap lands
	var out []ledger.Outcome
	t.observe(&out)
	t.batch = len(changes)
	fault := w.fault(t, StepSwap)
	switch {
	case fault == simkit.Refused:
		t.sleep(w.latency())
		return nil, errThrottled
	case fault == simkit.NoFault && w.plan.dynamo:
		return r.swapEach(changes)
	case fault == simkit.CrashAfter && w.plan.dynamo: // some requests were not sent
		changes = w.randomSubset(changes)
	case fault == simkit.Torn && w.Tape.Chance(500):
		return r.swapInPart(changes)
	}
	if fault == simkit.Torn {
		changes, fault = w.randomSubset(changes), simkit.Lost
	}
	answered, _ := t.send(fault, func() error {
		out = w.swap(by, changes)
		return nil
	})
	if !answered {
		return nil, errNoAnswer
	}
	return out, nil
}

// The changes without a response may land or not.
func (r *ledgerView) swapInPart(changes []ledger.Change) ([]ledger.Outcome, error) {
	t := r.thread
	w, by := t.world, t.node
	out := make([]ledger.Outcome, len(changes))
	t.observe(&out)
	answered, _ := t.send(simkit.NoFault, func() error {
		for i := range changes {
			out[i].Err = errNoAnswer
			switch w.Tape.Choose(3) {
			case 0:
				out[i] = w.swap(by, changes[i:i+1])[0]
			case 1:
				w.swap(by, changes[i:i+1])
			}
		}
		return nil
	})
	if !answered {
		return nil, errNoAnswer
	}
	return out, nil
}

// A store need not execute a batch as one transaction.
func (w *World) randomSubset(changes []ledger.Change) (some []ledger.Change) {
	for _, c := range changes {
		if w.Tape.Chance(500) {
			some = append(some, c)
		}
	}
	return some
}

func (r *ledgerView) Load(ctx context.Context, keys []ledger.RowKey) (found []ledger.Row, err error) {
	r.thread.observe(&found)
	if r.thread.read(ctx, StepLoad, func() { found, err = r.thread.world.store.Load(context.Background(), keys) }) != nil {
		return nil, errNoRows
	}
	return found, err
}

func (r *ledgerView) Due(ctx context.Context, pipeline string, before time.Time, limit int) (found []ledger.Row, err error) {
	if r.thread.world.plan.dynamo {
		return r.dueByIndex(ctx, pipeline, before, limit)
	}
	due := func() { found, err = r.thread.world.due(pipeline, before, limit) }
	r.thread.observe(&found)
	if r.thread.read(ctx, StepDue, due) != nil {
		return nil, errNoRows
	}
	return found, err
}

// A lagging index has no order.
func (w *World) due(pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	if w.plan.lag == 0 {
		return w.store.Due(context.Background(), pipeline, before, limit)
	}
	found, err := w.laggingRows.Due(context.Background(), pipeline, before, len(w.laggingRows.rows))
	for i := range found {
		j := i + w.Tape.Choose(len(found)-i)
		found[i], found[j] = found[j], found[i]
	}
	return found[:min(limit, len(found))], err
}

func (w *World) replicate(c *ledger.Change) {
	key, row := c.Key, ledger.Row{}
	if c.Row != nil {
		row = *c.Row
	}
	w.After(w.plan.lag, func() { w.laggingRows.set(key, row) })
}

func (r *ledgerView) Scan(ctx context.Context, in ledger.Range) iter.Seq2[ledger.Row, error] {
	var found []ledger.Row
	r.thread.observe(&found)
	err := r.thread.read(ctx, StepLoad, func() {
		found = slices.DeleteFunc(r.thread.world.scanned(), func(row ledger.Row) bool { return !in.Match(row.RowKey) })
	})
	slices.SortFunc(found, func(a, b ledger.Row) int { return a.RowKey.Compare(b.RowKey) })
	return func(yield func(ledger.Row, error) bool) {
		for _, row := range found {
			if !yield(row, nil) {
				return
			}
		}
		if err != nil {
			yield(ledger.Row{}, errNoRows)
		}
	}
}

// Scans of a DynamoDB table are not strongly consistent.
func (w *World) scanned() (all []ledger.Row) {
	if w.plan.dynamo {
		return slices.Clone(w.laggingRows.rows)
	}
	for _, t := range w.oracles {
		if t.exists {
			all = append(all, t.row)
		}
	}
	return all
}

func (r *ledgerView) Close() error { return nil }

func (w *World) swap(by *node, changes []ledger.Change) []ledger.Outcome {
	all := make([]ledger.Outcome, 0, len(changes))
	for i := range changes {
		out, err := w.store.Swap(context.Background(), changes[i:i+1])
		if err != nil {
			panic(err)
		}
		if out[0].Applied {
			w.oracleOf(changes[i].Key).rowWritten(by, changes[i].Row)
			if w.plan.dynamo {
				w.reindex(changes[i].Key, changes[i].Row)
			}
			if w.plan.lag > 0 {
				w.replicate(&changes[i])
			}
		}
		all = append(all, out...)
	}
	for _, n := range w.nodes {
		n.planTick()
	}
	return all
}
