package pipelinecmd

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// explanation explains a row.
type explanation struct {
	row   *ledger.Row
	now   time.Time
	limit int  // of attempts; 0: unknown
	known bool // the pipeline is in the configuration
	// unmatched says why the pipeline does not match the object any more.
	unmatched string
}

// reason says how the row came into its state.
func (w explanation) reason() string {
	r := w.row
	switch r.State(w.now) {
	case ledger.StateUnreadable:
		return app.Printable(r.Unreadable.Error())
	case ledger.StateSettled:
		if r.Have.Kind == event.Removed {
			return "the object was removed, and the effect of that is committed"
		}
		return "the effect of the newest version heard of is committed"
	case ledger.StatePending:
		return w.reasonPending()
	case ledger.StateProcessing:
		if r.Attempts == 0 {
			return r.Lease.Owner + " works on it, and a newer version was heard of meanwhile"
		}
		return r.Lease.Owner + " works on it: " + w.attempt()
	case ledger.StateStuck:
		return fmt.Sprintf("%s worked on it and has given no sign of life: its lease expired %s",
			r.Lease.Owner, app.RelativeTime(r.Lease.Until, w.now))
	case ledger.StateFailed:
		return w.attempt() + " failed: " + app.Printable(r.LastError)
	}
	switch {
	case w.limit == 0:
		return fmt.Sprintf("attempt %d failed, and was the last: %s", r.Attempts, app.Printable(r.LastError))
	case r.Attempts < w.limit:
		return fmt.Sprintf("attempt %d failed, and another would only repeat it: %s", r.Attempts, app.Printable(r.LastError))
	}
	return fmt.Sprintf("all %d attempts failed; the last: %s", r.Attempts, app.Printable(r.LastError))
}

// attempt says which attempt it is, or was.
func (w explanation) attempt() string {
	if w.limit == 0 {
		return fmt.Sprintf("attempt %d", w.row.Attempts)
	}
	return fmt.Sprintf("attempt %d of %d", w.row.Attempts, w.limit)
}

func (w explanation) reasonPending() string {
	r := w.row
	switch {
	case r.Forced:
		return "somebody demanded the effect again"
	case r.Have.Kind == 0:
		return "no worker has finished it since it was heard of, " + app.RelativeTime(r.UpdatedAt, w.now)
	}
	return "a newer version was heard of than the one whose effect is committed"
}

// next says what will happen, and when.
func (w explanation) next() string {
	r := w.row
	due := r.Due()
	state := r.State(w.now)
	switch {
	case state == ledger.StateUnreadable:
		return "nothing by this Pawl: it leaves the row as it is, and hands events of the object back"
	case state == ledger.StateDead:
		return "nothing, until the object changes or somebody runs: pawl redrive --pipeline " + r.Pipeline + " " + app.ShellQuote(r.Object())
	case due.IsZero():
		return "nothing, until the object changes"
	case w.unmatched != "" && state != ledger.StateProcessing:
		return "nothing: the pipeline no longer matches it, as " + w.unmatched + ". It rests until it is matched again, or somebody runs: pawl redrive --drop --pipeline " + r.Pipeline + " " + app.ShellQuote(r.Object())
	case !w.known:
		return "nothing: the configuration has no such pipeline, so no worker looks"
	case state == ledger.StateSettled:
		return w.atTime("a worker looks again", due, ", because a write of a lost attempt may land late")
	case state == ledger.StateProcessing:
		return w.atTime("it ends, or its lease is renewed; without a sign of life another worker takes over", due, "")
	case state == ledger.StateStuck:
		return w.atTime("a worker takes over", due, w.doubtClause())
	}
	return w.atTime("a worker tries", due, w.doubtClause())
}

// order tells of events that were passed over for their sequencer.
func (w explanation) order() string {
	r := w.row
	if r.Disorder == 0 {
		return ""
	}
	return fmt.Sprintf("in doubt: %d events were passed over whose time is newer and whose sequencer is older than %s. Where the object has changed, run: pawl redrive --reset-order --pipeline %s %s",
		r.Disorder, r.Want.Sequencer.Raw(), r.Pipeline, app.ShellQuote(r.Object()))
}

// atTime puts a time into a sentence, and wonders where it is long past.
func (w explanation) atTime(what string, t time.Time, more string) string {
	late := w.now.Sub(t)
	switch {
	case late < 0:
		return what + " " + app.RelativeTime(t, w.now) + " (" + app.FormatTime(t) + ")" + more
	case late < time.Minute:
		return what + " now" + more
	}
	return what + " as soon as one is free" + more + "; that is late by " + app.FormatDuration(late) + `: is "pawl run" running?`
}

func (w explanation) doubtClause() string {
	switch {
	case w.row.Forced:
		return ", even where the effect is committed: somebody forced it"
	case w.row.Doubt:
		return ", and looks first whether an earlier attempt did it"
	}
	return ""
}
