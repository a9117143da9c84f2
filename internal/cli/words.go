package cli

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// words explains a row.
type words struct {
	row   *ledger.Row
	now   time.Time
	limit int  // of attempts
	known bool // the pipeline is in the configuration
}

// why says how the row came into its state.
func (w words) why() string {
	r := w.row
	switch r.State(w.now) {
	case ledger.StateSettled:
		if r.Have.Kind == event.Removed {
			return "the object was removed, and the effect of that is committed"
		}
		return "the effect of the newest version heard of is committed"
	case ledger.StatePending:
		if r.Have.Kind == 0 {
			return "it was heard of " + relative(r.UpdatedAt, w.now) + ", and no worker has finished it yet"
		}
		return "a newer version was heard of than the one whose effect is committed"
	case ledger.StateProcessing:
		return fmt.Sprintf("%s works on it: attempt %d of %d", r.Lease.Owner, r.Attempts, w.limit)
	case ledger.StateStuck:
		return fmt.Sprintf("%s worked on it and has given no sign of life: its lease expired %s",
			r.Lease.Owner, relative(r.Lease.Until, w.now))
	case ledger.StateFailed:
		return fmt.Sprintf("attempt %d of %d failed: %s", r.Attempts, w.limit, visible(r.LastError))
	}
	if r.Attempts < w.limit {
		return fmt.Sprintf("attempt %d failed, and another would only repeat it: %s", r.Attempts, visible(r.LastError))
	}
	return fmt.Sprintf("all %d attempts failed; the last: %s", r.Attempts, visible(r.LastError))
}

// next says what will happen, and when.
func (w words) next() string {
	s := w.nextStep()
	if !w.known && !w.row.Due().IsZero() {
		s += "; but the configuration has no such pipeline, so no worker of it will look"
	}
	return s
}

func (w words) nextStep() string {
	r := w.row
	due := r.Due()
	switch r.State(w.now) {
	case ledger.StateSettled:
		if due.IsZero() {
			return "nothing, until the object changes"
		}
		return "a worker looks again " + w.from(due) + ", because a write of a lost attempt may land late"
	case ledger.StatePending, ledger.StateFailed:
		return "a worker tries " + w.from(due) + w.doubt()
	case ledger.StateProcessing:
		return "it ends, or its lease is renewed; without a sign of life another worker takes over " + w.from(due)
	case ledger.StateStuck:
		return "a worker takes over " + w.from(due) + w.doubt()
	}
	return "nothing, until the object changes or somebody runs: pawl redrive --pipeline " + r.Pipeline + " " + shellQuote(r.Object())
}

// from prints when something happens, and wonders where it is overdue.
func (w words) from(t time.Time) string {
	late := w.now.Sub(t)
	switch {
	case late < 0:
		return relative(t, w.now) + " (" + clock(t) + ")"
	case late < time.Minute:
		return "now"
	}
	return "as soon as one is free; it is late by " + span(late) + ": is \"pawl run\" running?"
}

func (w words) doubt() string {
	switch w.row.Doubt {
	case ledger.DoubtLook:
		return ", and looks first whether an earlier attempt did it"
	case ledger.DoubtAct:
		return ", even where the effect is committed: somebody forced it"
	}
	return ""
}

// clock prints a time exactly.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
