package ledger

import (
	"time"

	"github.com/pawlhq/pawl/event"
)

// Verdict is the ledger's judgement of an event.
type Verdict uint8

// Only Raised and Disordered change the row.
const (
	Raised     Verdict = iota + 1
	Duplicate          // seen before
	Stale              // older than Want
	Disordered         // older sequencer but newer time than Want, which stays
)

// String returns the verdict's name.
func (v Verdict) String() string {
	return [...]string{"", "raised", "duplicate", "stale", "disordered"}[v]
}

// Observe records an event. The row of a new object has only its key.
//
// A trusted sequencer decides alone whether Want is raised. Any other event raises Want by
// Generation, because it may be new. Attempts then reset only if its time is newer than any before.
// Otherwise two redelivered copies of one poison event would revive each other forever.
func (r Row) Observe(e *event.Event, trusted bool, now time.Time) (Row, Verdict) {
	fresh, at := true, plausibleTime(e.Time, now)
	newest := !at.Before(r.EventTime)
	if trusted && !e.Sequencer.IsZero() {
		switch c := e.Sequencer.CompareSameKey(r.Want.Sequencer); {
		case c < 0 && at.After(r.EventTime.Add(r.disorderThreshold())) && !isVersionRemoval(e):
			return r.disordered(e, at, now), Disordered
		case c < 0:
			return r, Stale
		case c == 0:
			return r, Duplicate
		}
		r.Want, newest, r.Disorder = Version{Sequencer: e.Sequencer}, true, 0
	} else {
		fresh = at.After(r.EventTime)
		r.Want.Generation++
	}
	if fresh {
		r.Attempts, r.RetryAt, r.LastError, r.Dead = 0, time.Time{}, "", false
	}
	if newest && !r.Dead { // a dead row keeps the content that it died of
		r.Want.Kind = e.Kind
		r.Want.Identity = Identity{VersionID: e.Object.VersionID, ETag: e.ETag, Size: e.Size}
	}
	r.noteEventTimes(e, at)
	if r.CreatedAt.IsZero() {
		r.CreatedAt = now
	}
	r.addEntry(now, "raised", e.Kind.String()+" "+r.Want.Order()+" "+e.Name)
	return r, Raised
}

func (r *Row) noteEventTimes(e *event.Event, at time.Time) {
	if at.After(r.EventTime) {
		r.EventTime = at
	}
	if e.Kind == event.Created && at.After(r.CreatedTime) {
		r.CreatedTime = at
	}
}

// The first disordered event of a row may be due to clock differences.
func (r *Row) disorderThreshold() time.Duration {
	if r.Disorder > 0 {
		return 0
	}
	return 15 * time.Second
}

// In some stores, a removal of one version has the sequencer position of that version, even if it
// is much later.
func isVersionRemoval(e *event.Event) bool {
	return e.Kind == event.Removed && e.Object.VersionID != ""
}

// Pawl cannot know whether the sequencer or the time is wrong, so Want stays.
func (r Row) disordered(e *event.Event, at, now time.Time) Row {
	r.Disorder++
	r.noteEventTimes(e, at)
	r.addEntry(now, "disordered", e.Kind.String()+" "+e.Sequencer.String()+" "+e.Name+" is newer by its time")
	return r
}

// Raise records that an audit found the object different from the row. id is the identity that the
// audit saw, zero for a removal.
//
// Want is raised by Generation, so that a later event outranks it. A dead row names the content
// that it died of, so audits do not revive it forever. No worker may hold the row, because the end
// of its attempt would clear Doubt.
func (r Row) Raise(kind event.Kind, id Identity, now time.Time) Row {
	r.Want.Generation++
	r.Want.Kind, r.Want.Identity = kind, id
	r.Attempts, r.RetryAt, r.LastError, r.Dead = 0, time.Time{}, "", false
	r.Doubt = true
	if at := plausibleTime(id.ModTime, now); at.After(r.CreatedTime) {
		r.CreatedTime = at
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = now
	}
	r.addEntry(now, "raised", kind.String()+" "+r.Want.Order()+" audit")
	return r
}

const maxAhead = 15 * time.Minute

// A future time would make all later real times look old.
func plausibleTime(t, now time.Time) time.Time {
	if t.After(now.Add(maxAhead)) {
		return time.Time{}
	}
	return t
}

// ChangesShape reports whether the event's sequencer has another format than the row's, which makes
// the order doubtful.
func (r *Row) ChangesShape(e *event.Event) bool {
	return !e.Sequencer.SameShape(r.Want.Sequencer)
}
