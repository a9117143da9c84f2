package pipelinecmd

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// explanation describes a row's state in English.
type explanation struct {
	row       *ledger.Row
	now       time.Time
	limit     int    // attempts; 0 means unknown
	known     bool   // the pipeline is configured
	unmatched string // why the pipeline no longer matches; or ""
}

func (w explanation) reason() string {
	r := w.row
	switch r.State(w.now) {
	case ledger.StateUnreadable:
		return app.Printable(r.Unreadable.Error())
	case ledger.StateSettled:
		if r.Have.Kind == event.Removed {
			return "the effect of the object's removal is committed"
		}
		return "the effect of the newest known version is committed"
	case ledger.StatePending:
		return w.reasonPending()
	case ledger.StateProcessing:
		if r.Attempts == 0 {
			return r.Lease.Owner + " is processing it; a newer version arrived meanwhile"
		}
		return r.Lease.Owner + " is processing it: " + w.attempt()
	case ledger.StateStuck:
		return fmt.Sprintf("%s was processing it but stopped renewing its lease, which expired %s",
			r.Lease.Owner, app.RelativeTime(r.Lease.Until, w.now))
	case ledger.StateFailed:
		if r.Attempts == 0 {
			return "the attempt failed, but does not count: " + app.Printable(r.LastError)
		}
		return w.attempt() + " failed: " + app.Printable(r.LastError)
	}
	switch {
	case w.limit == 0:
		return fmt.Sprintf("attempt %d failed and was the last: %s", r.Attempts, app.Printable(r.LastError))
	case r.Attempts < w.limit:
		return fmt.Sprintf("attempt %d failed with a permanent error: %s", r.Attempts, app.Printable(r.LastError))
	}
	return fmt.Sprintf("all %d attempts failed; last error: %s", r.Attempts, app.Printable(r.LastError))
}

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
		return "an operator forced the effect to run again"
	case r.Have.Kind == 0:
		return "no worker has completed it yet; the row was last updated " + app.RelativeTime(r.UpdatedAt, w.now)
	}
	return "the newest known version is newer than the one whose effect is committed"
}

func (w explanation) next() string {
	r := w.row
	due := r.Due()
	state := r.State(w.now)
	switch {
	case state == ledger.StateUnreadable:
		return "nothing: this version of Pawl does not change the row, and returns events of the object to their source"
	case state == ledger.StateDead:
		return "nothing until the object changes or you run: pawl redrive --pipeline " + r.Pipeline + " " + app.ShellQuote(r.Object())
	case due.IsZero():
		return "nothing until the object changes"
	case w.unmatched != "" && state != ledger.StateProcessing:
		return "nothing: the pipeline now " + w.unmatched + ". The row is deferred until the pipeline matches the object again or you run: pawl redrive --drop --pipeline " + r.Pipeline + " " + app.ShellQuote(r.Object())
	case !w.known:
		return "nothing: the configuration has no pipeline of this name, so no worker processes the row"
	case state == ledger.StateSettled:
		return w.atTime("a worker verifies the output", due, ", because a write of a lost attempt may land late")
	case state == ledger.StateProcessing:
		return w.atTime("the attempt ends or its lease is renewed; otherwise another worker takes over", due, "")
	case state == ledger.StateStuck:
		return w.atTime("another worker takes over", due, w.doubtClause())
	}
	return w.atTime("a worker starts an attempt", due, w.doubtClause())
}

// order reports events that Pawl ignored because of their sequencer.
func (w explanation) order() string {
	r := w.row
	if r.Disorder == 0 {
		return ""
	}
	return fmt.Sprintf("uncertain: ignored %d events with a newer time, because their sequencer is older than %s. If the object has changed, run: pawl redrive --reset-order --pipeline %s %s",
		r.Disorder, r.Want.Sequencer.Raw(), r.Pipeline, app.ShellQuote(r.Object()))
}

// If the time is more than a minute ago, atTime asks whether a worker is running.
func (w explanation) atTime(what string, t time.Time, more string) string {
	late := w.now.Sub(t)
	switch {
	case late < 0:
		return what + " " + app.RelativeTime(t, w.now) + " (" + app.FormatTime(t) + ")" + more
	case late < time.Minute:
		return what + " now" + more
	}
	return what + " as soon as one is free" + more + "; overdue by " + app.FormatDuration(late) + `: is "pawl run" running?`
}

func (w explanation) doubtClause() string {
	switch {
	case w.row.Forced:
		return ", even if the effect is committed, because an operator forced it"
	case w.row.Doubt:
		return ", after checking whether an earlier attempt had its effect"
	}
	return ""
}
