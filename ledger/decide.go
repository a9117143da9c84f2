package ledger

import (
	"time"

	"github.com/pawlhq/pawl/event"
)

// Pinned is the state of the output that an attempt recorded before it read the input.
type Pinned struct {
	Exists bool
	// Source is the source identity in the output's metadata. It is empty if Pawl did not
	// write the output.
	Source  string
	ModTime time.Time
}

// Source returns the source identity for the metadata of an output that was made from r.
func (a *Claim) Source(r *Read) string {
	if r.ByEvent {
		return "order=" + a.Want.Order()
	}
	return r.Identity.String()
}

// MustAct reports whether the attempt must perform the effect. out is nil for a pipeline
// without an output.
//
// A forced attempt always acts. Without doubt, MustAct compares the identity that was read
// with Have. With doubt, or when verifying, it compares the source in the output's
// metadata with the identity that was read. With doubt, an attempt without an output
// always acts. An attempt in event order does as well, because its output names the event
// and not the content that was read.
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

// MustCommit is MustAct for a handler that commits its effect and Have in one transaction,
// so that a crash leaves no doubt.
func (a *Claim) MustCommit(r *Read) bool { return a.Forced || !a.isCommitted(r) }

// isCommitted reports whether Have is the version that was read.
func (a *Claim) isCommitted(r *Read) bool {
	if r.ByEvent {
		return a.Want.Compare(a.Have) == 0
	}
	return r.Kind == a.Have.Kind && (r.Kind == event.Removed || r.Identity.Same(a.Have.Identity))
}

// consistencyWindow is the maximum time for which an eventually consistent store hides an
// object.
const consistencyWindow = time.Minute

// NotFoundDelay returns the time for which an attempt must not treat "not found" as a
// removal, because an eventually consistent store may hide the object. The delay lasts
// until the newest created event, Have and the pinned output are a minute old. There is no
// delay if the result is zero or less. If the store's clock is ahead of ours, the delay
// grows by at most a minute.
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

// IdempotencyKey identifies the effect. It is equal for all attempts at one version of one
// object, and different for all others. A forced redrive has its own key.
func (a *Claim) IdempotencyKey(r *Read) string {
	version := a.Source(r)
	if r.Kind == event.Removed || a.Forced {
		// A removal has no identity, and a forced effect must differ from the committed
		// one. Have stays the same until one attempt completes.
		version += " after " + a.Have.Order()
	}
	return a.Key.digest(r.Kind.String(), version)
}
