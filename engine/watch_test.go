package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/ledger"
)

// watched is the ledger of a history. It sees every write, and says what must
// be true of it.
type watched struct {
	*ledger.Rows
	history *history
	writer  *actor // nil: an operator

	fences   map[ledger.RowKey]int64                     // the highest granted
	until    map[grant]time.Time                         // when others may take it over
	observed map[ledger.RowKey]map[string]ledger.Version // event name → Want when the row had it first
	died     map[ledger.RowKey]ledger.Version            // the highest Want that a dead row had
	silent   map[ledger.RowKey]*actor                    // who wrote a death that nobody was told of
	blurred  map[ledger.RowKey]bool                      // one write took more events than a history holds
	counts   map[ledger.RowKey]*counts
}

// grant is a lease that was granted.
type grant struct {
	key   ledger.RowKey
	fence int64
}

// counts is what happened to a row.
type counts struct {
	raised, claimed, takenOver, completed, released, verify, redriven, suspected, lost int
}

func newWatched() *watched {
	return &watched{
		Rows: newRows(), fences: map[ledger.RowKey]int64{}, until: map[grant]time.Time{},
		observed: map[ledger.RowKey]map[string]ledger.Version{}, died: map[ledger.RowKey]ledger.Version{},
		silent: map[ledger.RowKey]*actor{}, blurred: map[ledger.RowKey]bool{}, counts: map[ledger.RowKey]*counts{},
	}
}

// Swap is the store's, change by change.
func (w *watched) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	all := make([]ledger.Outcome, 0, len(changes))
	for i := range changes {
		before := w.row(changes[i].Key)
		out, err := w.Rows.Swap(ctx, changes[i:i+1])
		if err != nil {
			return nil, err
		}
		if out[0].Applied {
			w.wrote(&before, changes[i].Row)
		}
		all = append(all, out...)
	}
	return all, nil
}

func (w *watched) row(key ledger.RowKey) ledger.Row {
	rows, err := w.Load(w.history.t.Context(), []ledger.RowKey{key})
	if err != nil {
		w.history.t.Fatal(err)
	}
	if len(rows) == 0 {
		return ledger.Row{RowKey: key}
	}
	return rows[0]
}

func (w *watched) count(key ledger.RowKey) *counts {
	c := w.counts[key]
	if c == nil {
		c = &counts{}
		w.counts[key] = c
	}
	return c
}

// wrote checks a write that landed.
func (w *watched) wrote(before, after *ledger.Row) {
	h, c := w.history, w.count(after.RowKey)
	if after.Want.Compare(before.Want) < 0 || after.Have.Compare(before.Have) < 0 || after.Have.Compare(after.Want) > 0 {
		h.fail("%s: Want %s→%s, Have %s→%s", after.RowKey, before.Want.Order(), after.Want.Order(), before.Have.Order(), after.Have.Order())
	}
	if after.Lease.Fence < before.Lease.Fence {
		h.fail("%s: fence %d follows %d", after.RowKey, after.Lease.Fence, before.Lease.Fence)
	}
	if after.Lease.Fence != before.Lease.Fence || !after.Held() {
		w.checkLease(before)
	}
	if after.Held() {
		w.until[grant{after.RowKey, after.Lease.Fence}] = after.Lease.Until
	}
	if after.VerifyAt.After(before.VerifyAt) {
		c.verify++
	}
	if after.Dead && !before.Dead {
		w.silent[after.RowKey] = w.writer
	}
	if after.Dead && after.Want.Compare(w.died[after.RowKey]) > 0 {
		w.died[after.RowKey] = after.Want
	}
	entries := after.History[:news(before.History, after.History)]
	for i := range entries {
		w.tally(c, after, &entries[i])
		if entries[i].What == "failed" && after.Attempts < before.Attempts {
			c.released++ // in an outage
		}
	}
	if len(entries) == ledger.MaxHistory {
		w.blurred[after.RowKey] = true
	}
}

// checkLease demands that nobody relies on the lease in a row that another is
// taking, or that is ended.
func (w *watched) checkLease(row *ledger.Row) {
	for _, a := range w.history.actors {
		if k := a.tasks[row.RowKey]; k != nil && k.Fence == row.Lease.Fence && row.Held() && a.live(k) {
			w.history.fail("%s: fence %d is taken from %s, whose task runs until %v", row.RowKey, k.Fence, a.name, k.deadline)
		}
	}
}

// news returns how many entries a history got.
func news(before, after []ledger.Entry) int {
	n := 0
	for n < len(after) && !slices.Equal(after[n:], before[:min(len(before), len(after)-n)]) {
		n++
	}
	return n
}

func (w *watched) tally(c *counts, row *ledger.Row, e *ledger.Entry) {
	switch e.What {
	case "raised":
		c.raised++
		if w.observed[row.RowKey] == nil {
			w.observed[row.RowKey] = map[string]ledger.Version{}
		}
		name := e.Note[strings.LastIndexByte(e.Note, ' ')+1:]
		if _, known := w.observed[row.RowKey][name]; !known {
			w.observed[row.RowKey][name] = row.Want
		}
	case "claimed", "taken over":
		c.claimed++
		if e.What == "taken over" {
			c.takenOver++
		}
		if row.Lease.Fence <= w.fences[row.RowKey] {
			w.history.fail("%s: fence %d was granted after %d", row.RowKey, row.Lease.Fence, w.fences[row.RowKey])
		}
		w.fences[row.RowKey] = row.Lease.Fence
	case "completed", "nothing to do":
		c.completed++
	case "released":
		c.released++
	case "redriven":
		c.redriven++
	case "suspected":
		c.suspected++
	}
}

// checkLost demands that an attempt which ended without its lease left word of
// what it had sent.
func (a *actor) checkLost(key ledger.RowKey) {
	c := a.store.count(key)
	if a.sent[key] {
		c.lost++
	}
	if c.suspected < c.lost {
		a.fail("%s: an attempt at %s lost its lease, and nobody suspects what it sent", a.name, key)
	}
}

// acked checks that the ledger had an event when its message was acknowledged.
func (w *watched) acked(item *engine.Item) {
	row := w.row(item.Key)
	want, known := w.observed[item.Key][item.Event.Name]
	if item.Trusted {
		want.Sequencer, want.Generation = item.Event.Sequencer, 0
		known = row.Want.Compare(want) >= 0
	}
	if !known && !w.blurred[item.Key] {
		w.history.fail("%s: event %s is acknowledged, and the ledger does not have it", item.Key, item.Event.Name)
	}
	if !w.history.cfg.AckSettled || item.Trusted && row.Want.Sequencer.CompareSameKey(want.Sequencer) > 0 {
		return
	}
	if row.Have.Compare(want) < 0 && w.died[item.Key].Compare(want) < 0 {
		w.history.fail("%s: event %s is acknowledged, and was never settled", item.Key, item.Event.Name)
	}
}

// checkSwap demands small batches, few of them, and no row in two.
func (a *actor) checkSwap(s *engine.Swap) {
	a.swaps[s.Batch] = len(s.Changes)
	if len(s.Changes) > a.cfg.Batch || len(s.Changes) == 0 || len(a.swaps) > a.cfg.Swaps {
		a.fail("%s: batch %d of %d changes is one of %d", a.name, s.Batch, len(s.Changes), len(a.swaps))
	}
	seen := map[ledger.RowKey]bool{}
	for _, c := range s.Changes {
		if what := c.Row.History[0].What; a.draining && (what == "claimed" || what == "taken over") && !a.had[c.Row.Lease.Fence] {
			a.fail("%s: a claim of %s while draining", a.name, c.Key)
		}
		if seen[c.Key] {
			a.fail("%s: %s is twice in batch %d", a.name, c.Key, s.Batch)
		}
		seen[c.Key] = true
	}
}

// checkStart demands that a task has the lease it is told it has, that no other
// has one, and that there are not too many.
func (a *actor) checkStart(k *task) {
	a.checkDeadline(k, k.deadline)
	row := a.store.row(k.Key)
	if a.live(k) && (row.Lease.Fence != k.Fence || row.Lease.Owner != a.name) {
		a.fail("%s: %s starts with fence %d, but %s has %d", a.name, k.Key, k.Fence, row.Lease.Owner, row.Lease.Fence)
	}
	for _, other := range a.actors {
		if o := other.tasks[k.Key]; o != nil && other.live(o) && a.live(k) {
			a.fail("%s: %s starts with fence %d while %s runs with %d", a.name, k.Key, k.Fence, other.name, o.Fence)
		}
	}
	size, neighbours := k.Want.Identity.Size, 0
	for _, o := range a.tasks {
		if o.Key.Pipeline == k.Key.Pipeline {
			size += o.Want.Identity.Size
			neighbours++
		}
	}
	if n := len(a.tasks) + 1; n > max(a.cfg.Tasks, len(a.cfg.Pipelines)) || neighbours > 0 && size > a.cfg.Bytes {
		a.fail("%s: %d tasks run, of %d bytes", a.name, n, size)
	}
}

// checkDeadline demands that a task stops relying on its lease before others may
// take it: by all that the margin for clocks is worth, however long the ledger
// took to answer.
func (a *actor) checkDeadline(k *task, deadline time.Time) {
	until := a.store.until[grant{k.Key, k.Fence}]
	if deadline.After(until.Add(-a.cfg.Policy.Skew)) {
		a.fail("%s: fence %d of %s runs until %v, and others may take it from %v on", a.name, k.Fence, k.Key, deadline, until)
	}
}

// checkExtend demands that a lease is renewed before the task that has it was to
// stop. A handler that goes on regardless would hold its object for ever.
func (a *actor) checkExtend(k *task, deadline time.Time) {
	a.checkDeadline(k, deadline)
	if sent := deadline.Add(-a.cfg.Policy.TTL); !sent.Before(k.deadline) {
		a.fail("%s: fence %d of %s ran out at %v, and was renewed at %v", a.name, k.Fence, k.Key, k.deadline, sent)
	}
}

func (a *actor) checkSweep(s *engine.Sweep) {
	if a.sweeping[s.Pipeline] {
		a.fail("%s: a second sweep of %s", a.name, s.Pipeline)
	}
	a.sweeping[s.Pipeline] = true
}

// atRest reports that nothing happens any more but sweeps.
func (h *history) atRest() bool { return h.store.unrest() == nil }

// unrest says what is not at rest.
func (w *watched) unrest() error {
	h := w.history
	for i, m := range h.messages {
		if !m.acked {
			return fmt.Errorf("message %d is not acknowledged", i)
		}
	}
	for _, a := range h.actors {
		if !a.gone && (!a.engine.Idle() || a.engine.Pending() != 0 || len(a.open) > 0 || len(a.swaps) > 0) {
			return fmt.Errorf("%s is busy with %d objects, %d messages, %d swaps", a.name, a.engine.Pending(), len(a.open), len(a.swaps))
		}
	}
	for _, a := range h.actors {
		if !a.gone && !a.draining && !a.engine.Rested() {
			return fmt.Errorf("%s waits for %d objects", a.name, a.engine.Unsettled())
		}
	}
	for _, key := range h.keys {
		row := w.row(key)
		swept := h.cfg.Sweep > 0
		if a := w.silent[key]; row.Dead && a != nil && !a.gone && !a.hard {
			return fmt.Errorf("%s: %s is dead, and nobody was told", a.name, key)
		}
		if !row.Settled() && !row.Dead || row.Held() && swept || !row.VerifyAt.IsZero() && !row.Dead && swept {
			return fmt.Errorf("%s: Want %s, Have %s, lease %v, verification %v, sweep %v", key, row.Want.Order(), row.Have.Order(), row.Lease, row.VerifyAt, h.cfg.Sweep)
		}
	}
	return nil
}

// final is what must be true in the end.
func (w *watched) final() error {
	if err := w.unrest(); err != nil {
		return fmt.Errorf("not at rest %v after the last fault: %w", patience, err)
	}
	for key, c := range w.counts {
		// Attempts start afresh with a raise, a completion or a redrive; between
		// two of those there are at most so many claims, and those given back.
		fresh := c.raised + c.completed + c.redriven
		if limit := w.history.cfg.Policy.Attempts*fresh + c.released; c.claimed > limit {
			return fmt.Errorf("%s: %d claims, want at most %d", key, c.claimed, limit)
		}
		// A completion is of a version, of a verification, or of a lease that
		// was taken over.
		if limit := c.raised + c.verify + c.takenOver; c.completed > limit {
			return fmt.Errorf("%s: %d completions, want at most %d", key, c.completed, limit)
		}
	}
	return nil
}

func sortedIDs[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }
