package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
)

// In a quarter of the worlds the ledger is like a DynamoDB table. Each change of a swap is a
// separate request, and the index of due rows is eventually consistent.

var errThrottled = fmt.Errorf("the ledger throttles: %w", store.ErrThrottled)

func (r *ledgerView) swapEach(changes []ledger.Change) ([]ledger.Outcome, error) {
	out := make([]ledger.Outcome, len(changes))
	var wait time.Duration
	for i := range changes {
		wait = max(wait, r.sendChange(changes[i:i+1], &out[i]))
	}
	if !r.thread.sleep(wait) {
		return nil, errNoAnswer
	}
	return out, nil
}

func (r *ledgerView) sendChange(change []ledger.Change, out *ledger.Outcome) time.Duration {
	w, by := r.thread.world, r.thread.node // the thread may have another process when the change lands
	delay := w.latency()
	unanswered := simkit.Func(func() { w.swap(by, change) })
	fault := w.fault(r.thread, StepChange)
	switch fault {
	case simkit.Refused:
		out.Err = errThrottled
		return delay
	case simkit.Lost:
		w.after(delay, unanswered)
	case simkit.Late:
		w.after(w.Tape.UpTo(maxWriteDelay), unanswered)
	case simkit.Unsent:
	default:
		if fault == simkit.Twice {
			w.after(delay, unanswered)
		}
		w.After(delay, func() { *out = w.swap(by, change)[0] })
		return delay + w.latency()
	}
	out.Err = errNoAnswer
	return timeout
}

// indexed is an entry of the index of due rows, visible in [from, until).
type indexed struct {
	key         ledger.RowKey
	due         time.Time
	from, until time.Duration
}

// maxIndexLag exceeds the lag that the driver assumes, because DynamoDB guarantees no bound.
const maxIndexLag = 20 * time.Second

// row is nil after a deletion. Reads may see both the old and the new entry, or neither.
func (w *World) reindex(k ledger.RowKey, row *ledger.Row) {
	lagged := func() time.Duration {
		return w.Now + w.Tape.UpTo(simkit.Pick(w.Tape, time.Millisecond, time.Second, maxIndexLag))
	}
	w.index = slices.DeleteFunc(w.index, func(e indexed) bool { return e.until <= w.Now })
	for i := range w.index {
		if e := &w.index[i]; e.key == k && e.until == never {
			e.until = max(e.from, lagged())
		}
	}
	if row != nil && !row.Due().IsZero() {
		w.index = append(w.index, indexed{key: k, due: row.Due(), from: lagged(), until: never})
	}
}

const never = time.Duration(1<<63 - 1)

// An entry may be outdated, its row may be deleted, and a row may have two entries.
func (r *ledgerView) dueByIndex(ctx context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	w := r.thread.world
	var entries []indexed
	err := r.thread.read(ctx, StepDue, func() {
		for _, e := range w.index {
			if e.from <= w.Now && w.Now < e.until && e.key.Pipeline == pipeline && !e.due.After(before) {
				entries = append(entries, e)
			}
		}
	})
	if err != nil {
		return nil, errThrottled
	}
	slices.SortFunc(entries, func(a, b indexed) int { return cmp.Or(a.due.Compare(b.due), a.key.Compare(b.key)) })
	var found []ledger.Row
	for _, e := range entries[:min(limit, len(entries))] {
		row, err := r.Load(ctx, []ledger.RowKey{e.key})
		if err != nil {
			return nil, err
		}
		found = append(found, row...)
	}
	return found, nil
}
