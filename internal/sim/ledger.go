package sim

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// rows is the ledger's store as one thread sees it.
type rows struct{ thread *thread }

var _ ledger.Store = (*rows)(nil)

var (
	errNoAnswer = errors.New("the ledger did not answer")
	errNoRows   = errors.New("the ledger is down for a moment")
)

// Swap implements ledger.Store.
func (r *rows) Swap(_ context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	t := r.thread
	if t.dead() {
		return nil, errNoAnswer
	}
	w, by := t.world, t.node // the thread may be another's when the swap lands
	var out []ledger.Outcome
	t.hears(&out)
	t.batch = len(changes)
	fault := w.fault(t, StepSwap)
	if fault == Torn {
		changes, fault = w.tear(changes), Lost
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

// tear returns some of the changes: not all of a batch need be one transaction.
func (w *World) tear(changes []ledger.Change) (some []ledger.Change) {
	for _, c := range changes {
		if w.tape.Chance(500) {
			some = append(some, c)
		}
	}
	return some
}

// Load implements ledger.Store.
func (r *rows) Load(ctx context.Context, keys []ledger.RowKey) (found []ledger.Row, err error) {
	r.thread.hears(&found)
	if r.thread.read(ctx, StepLoad, func() { found, err = r.thread.world.store.Load(context.Background(), keys) }) != nil {
		return nil, errNoRows
	}
	return found, err
}

// Due implements ledger.Store.
func (r *rows) Due(ctx context.Context, pipeline string, before time.Time, limit int) (found []ledger.Row, err error) {
	due := func() { found, err = r.thread.world.store.Due(context.Background(), pipeline, before, limit) }
	r.thread.hears(&found)
	if r.thread.read(ctx, StepDue, due) != nil {
		return nil, errNoRows
	}
	return found, err
}

// Scan implements ledger.Store. Nothing here scans.
func (r *rows) Scan(context.Context, ledger.Range) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) { yield(ledger.Row{}, errNoRows) }
}

// Close implements ledger.Store.
func (r *rows) Close() error { return nil }

// swap is a batch that reaches the ledger.
func (w *World) swap(by *node, changes []ledger.Change) []ledger.Outcome {
	all := make([]ledger.Outcome, 0, len(changes))
	for i := range changes {
		out, err := w.store.Swap(context.Background(), changes[i:i+1])
		if err != nil {
			panic(err)
		}
		if out[0].Applied {
			w.truth(changes[i].Key).wrote(by, changes[i].Row)
		}
		all = append(all, out...)
	}
	for _, n := range w.nodes {
		n.planTick()
	}
	return all
}
