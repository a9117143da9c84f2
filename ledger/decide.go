package ledger

import (
	"time"

	"github.com/pawlhq/pawl/event"
)

// Pinned is the state of the output that an attempt recorded before it read the input.
type Pinned struct {
	Exists bool
	// Source is the source in the output's metadata; empty: Pawl did not write the output.
	Source  string
	ModTime time.Time
}

// Source returns the source for the metadata of an output made from r.
func (a *Claim) Source(r *Read) string {
	if r.ByEvent {
		return "order=" + a.Want.Order()
	}
	return r.Identity.String()
}

// MustAct reports whether the attempt must perform the effect. out is nil for a pipeline without an
// output.
//
// With doubt, or when verifying, MustAct compares the identity that was read with the source in the
// output's metadata, and otherwise with Have. With doubt, an attempt without an output, or in event
// order, always acts.
func (a *Claim) MustAct(r *Read, out *Pinned) bool {
	switch {
	case a.Forced:
		return true
	case out == nil:
		return a.Doubt || !a.isCommitted(r)
	case r.ByEvent:
		return a.Doubt || a.Verifying || !a.isCommitted(r)
	case !a.Doubt && !a.Verifying:
		return !a.isCommitted(r)
	case r.Kind == event.Removed:
		return out.Exists
	}
	return !out.Exists || out.Source != a.Source(r)
}

// MustCommit is MustAct for a handler that commits its effect and Have together.
func (a *Claim) MustCommit(r *Read) bool { return a.Forced || !a.isCommitted(r) }

func (a *Claim) isCommitted(r *Read) bool {
	if r.ByEvent {
		return a.Want.Compare(a.Have) == 0
	}
	return r.Kind == a.Have.Kind && (r.Kind == event.Removed || r.Identity.Same(a.Have.Identity))
}

// consistencyWindow is the time for which an eventually consistent store may hide an object.
const consistencyWindow = time.Minute

// NotFoundDelay returns the remaining time for which an eventually consistent store may answer "not
// found" although the object exists. The time ends when the newest created event, Have and the
// pinned output are a minute old. A store's clock ahead of ours adds at most a minute.
func (a *Claim) NotFoundDelay(out *Pinned, now time.Time) time.Duration {
	newest := a.CreatedTime
	if a.Have.Kind == event.Created && a.Have.Identity.ModTime.After(newest) {
		newest = a.Have.Identity.ModTime
	}
	if out != nil && out.Exists && out.ModTime.After(newest) {
		newest = out.ModTime
	}
	if newest.IsZero() {
		return 0
	}
	return min(newest.Add(consistencyWindow).Sub(now), consistencyWindow)
}

// IdempotencyKey identifies the effect: equal for all attempts at one version of one object, and
// different for all others. A forced redrive has its own key.
func (a *Claim) IdempotencyKey(r *Read) string {
	version := a.Source(r)
	if r.Kind == event.Removed || a.Forced {
		// A removal has no identity, and a forced effect must differ from the committed one.
		version += " after " + a.Have.Order()
	}
	return a.Key.digest(r.Kind.String(), version)
}
