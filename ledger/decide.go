package ledger

import (
	"time"

	"github.com/pawlhq/pawl/event"
)

// Pinned is what an attempt saw of the output before it read the input.
type Pinned struct {
	Exists bool
	// Source is the identity that the output records of its source, empty
	// where Pawl did not write it.
	Source  string
	ModTime time.Time
}

// Source returns what an output made from r records of its source.
func (a *Claim) Source(r *Read) string {
	if r.ByEvent {
		return "order=" + a.Want.Order()
	}
	return r.Identity.String()
}

// MustAct decides whether there is anything to do. out is nil for a pipeline
// without an output.
//
// A forced attempt acts. Without a doubt, what was read is compared with Have by
// identity alone. With a doubt, or when verifying, the output itself tells what it
// was made from; without an output a doubt acts. So it does in event order, where an output
// tells the event that it was made for, and not the content that was read then.
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

// MustCommit is MustAct for a handler that commits its effect and Have together: a
// crash leaves no doubt of what it has done.
func (a *Claim) MustCommit(r *Read) bool { return a.Forced || !a.isCommitted(r) }

// isCommitted reports that what was read is what Have says is committed.
func (a *Claim) isCommitted(r *Read) bool {
	if r.ByEvent {
		return a.Want.Compare(a.Have) == 0
	}
	return r.Kind == a.Have.Kind && (r.Kind == event.Removed || r.Identity.Same(a.Have.Identity))
}

// consistencyWindow is how long an eventually consistent store may hide an object.
const consistencyWindow = time.Minute

// NotFoundDelay returns how long "not found" may not be believed yet, on a store
// declared eventually consistent: until the newest created event, Have and the
// pinned output, which is no older than its source, are a minute old. Zero or
// less: believe it. A clock that is ahead of ours delays that by a minute at
// most.
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

// IdempotencyKey names the effect: equal for every attempt at one version of
// one object, and different for every other. A forced redrive is an effect of
// its own.
func (a *Claim) IdempotencyKey(r *Read) string {
	version := a.Source(r)
	if r.Kind == event.Removed || a.Forced {
		// A removal has no identity, and what is forced is not what was had.
		// What was had stays the same until one of them is completed.
		version += " after " + a.Have.Order()
	}
	return a.Key.digest(r.Kind.String(), version)
}
