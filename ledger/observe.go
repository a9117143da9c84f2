package ledger

import (
	"time"

	"github.com/pawlhq/pawl/event"
)

// Verdict is what the ledger says of an event.
type Verdict uint8

// The verdicts. Only Raised and Disordered change the row.
const (
	Raised     Verdict = iota + 1
	Duplicate          // heard before
	Stale              // older than what was heard before
	Disordered         // stale by its sequencer, and newer by its time: counted, no more
)

// String returns the verdict's name.
func (v Verdict) String() string {
	return [...]string{"", "raised", "duplicate", "stale", "disordered"}[v]
}

// Observe takes note of an event. The row of an object never heard of is a Row
// with nothing but its key.
//
// A trusted sequencer decides alone: newer raises Want and gives the object
// fresh attempts; anything else changes nothing. An untrusted one, or none,
// always raises Want, by Generation, because it may be news; the attempts start
// afresh only where it is sure to be, for else two copies of a poisonous event,
// redelivered in turn, would keep each other alive.
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
	if newest && !r.Dead { // a dead row's Want goes on naming what it died of
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

// disorderThreshold is by how much a stale event's time must be newer than all before
// it, so that its sequencer is in doubt and not the clock. Once one was, any is.
func (r *Row) disorderThreshold() time.Duration {
	if r.Disorder > 0 {
		return 0
	}
	return 15 * time.Second
}

// isVersionRemoval reports that the event is about the removal of one version: of an old one,
// perhaps, whose place in the order it has on some stores, however late it comes.
func isVersionRemoval(e *event.Event) bool {
	return e.Kind == event.Removed && e.Object.VersionID != ""
}

// disordered takes note of an event that its sequencer calls stale. Nobody can tell
// which of the two is wrong, so Want stays; a person can, and resets the order.
func (r Row) disordered(e *event.Event, at, now time.Time) Row {
	r.Disorder++
	r.noteEventTimes(e, at)
	r.addEntry(now, "disordered", e.Kind.String()+" "+e.Sequencer.String()+" "+e.Name+" is newer by its time")
	return r
}

// Raise takes note that an audit has looked at the object and found it to differ
// from what the row knows. id is the identity that it saw, and none for a
// removal. As for Observe, an object never heard of has a Row with nothing but
// its key.
//
// It raises Want by Generation, so that a real event still outranks it, and
// gives the object fresh attempts. They end, for it happens once: a row that
// dies of what was seen names it. EventTime stays, for no event was seen. The
// caller must have found that nobody holds the row: the end of an attempt under
// way would clear the doubt.
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

// maxAhead is how far a store's clock may be ahead of ours.
const maxAhead = 15 * time.Minute

// plausibleTime returns a store's time, or none where it lies in the future: it
// would make every true time after it look old.
func plausibleTime(t, now time.Time) time.Time {
	if t.After(now.Add(maxAhead)) {
		return time.Time{}
	}
	return t
}

// ChangesShape reports that the event's sequencer is written differently from
// the row's, which makes the order of a trusted sequencer doubtful: an alarm.
func (r *Row) ChangesShape(e *event.Event) bool {
	return !e.Sequencer.SameShape(r.Want.Sequencer)
}
