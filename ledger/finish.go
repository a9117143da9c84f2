package ledger

import (
	"time"

	"github.com/pawlhq/pawl/event"
)

// Read is what an attempt found when it looked at the object.
type Read struct {
	Kind     event.Kind // zero: it did not get that far
	Identity Identity
	// ByEvent: the object was not read; Identity is what the event reported.
	ByEvent bool
}

// Ending is what an attempt knows of itself when it ends.
type Ending struct {
	Read Read
	// Sent: something may have had an effect. A publish went out, or a
	// handler without a fenced output began.
	Sent bool
	// Unsure: some publish had no definite answer, and may yet land.
	Unsure bool
}

// Complete commits: Have becomes what Want was at the claim, with the identity
// that was read. It is refused unless the row still carries the attempt's
// fence. acted is false where there was nothing to do.
//
// Want may have moved on meanwhile; then the row is pending, and the same write
// may claim it again.
func (r Row) Complete(a *Claim, e *Ending, acted bool, p *Policy, now time.Time) (Row, bool) {
	if !r.holds(a) {
		return r, false
	}
	r.Have = Version{Sequencer: a.Want.Sequencer, Generation: a.Want.Generation, Kind: e.Read.Kind, Identity: e.Read.Identity}
	r.Doubt = false
	r.Forced = r.Forced && !r.Settled() // a redrive that came during this attempt still applies
	if a.Verifying && r.VerifyAt.Equal(a.verifyAt) {
		r.VerifyAt = time.Time{}
	}
	r.endLease(e, p, now)
	r.Attempts, r.RetryAt, r.LastError = 0, time.Time{}, ""
	what := "completed"
	if !acted {
		what = "nothing to do"
	}
	r.addEntry(now, what, e.Read.Kind.String()+" "+r.Have.Order())
	return r, true
}

// Failure says why an attempt failed.
type Failure struct {
	Message   string
	Permanent bool          // trying the same content again is useless
	After     time.Duration // no sooner than this, when the other side said so
	// Uncounted: the object is not at fault, because the store could not be asked,
	// say, or this machine was short of something. The attempt is given back: an
	// outage must not kill the objects it meets.
	Uncounted bool
}

// Fail ends an attempt that may be made again: after a back-off, or never where
// the failure is permanent or the attempts are used up. Then the row is dead
// and its Want names what was read, so that another content can be told from what
// it died of, be it one that was heard of during the attempt. A permanent failure
// of a version that Want has left behind kills nothing: it does not speak of the
// new one.
//
// jitter is uniform in [0, 1).
func (r Row) Fail(a *Claim, e *Ending, f *Failure, jitter float64, p *Policy, now time.Time) (Row, bool) {
	if !r.holds(a) {
		return r, false
	}
	r.restoreDoubt(a, e)
	r.endLease(e, p, now)
	r.LastError = truncate(f.Message)
	failures := r.Attempts
	if f.Uncounted {
		failures, r.Attempts = uncountedBackoff, max(r.Attempts-1, 0)
	}
	moved := r.Want.Compare(a.Want) != 0
	switch {
	case r.Attempts >= p.Attempts, f.Permanent && !moved:
		r.Dead = true
		r.RetryAt = time.Time{}
		if e.Read.Kind != 0 {
			r.Want.Kind, r.Want.Identity = e.Read.Kind, e.Read.Identity
		}
		r.addEntry(now, "dead", r.LastError)
	case f.Permanent:
		r.RetryAt = time.Time{}
		r.addEntry(now, "failed", r.LastError)
	default:
		r.RetryAt = now.Add(max(p.backoff(failures, jitter), f.After))
		r.addEntry(now, "failed", r.LastError)
	}
	return r, true
}

// uncountedBackoff is the number of failures that an uncounted one backs off like: half a
// minute at most by default, which is kind to a store that comes back.
const uncountedBackoff = 6

// OutageBackoff returns the wait after so many probes of a service that is down.
func (p *Policy) OutageBackoff(probes int, jitter float64) time.Duration {
	return p.backoff(min(probes, uncountedBackoff), jitter)
}

// Release gives the lease and the attempt back: an orderly shutdown.
func (r Row) Release(a *Claim, e *Ending, p *Policy, now time.Time) (Row, bool) {
	if !r.holds(a) {
		return r, false
	}
	r.restoreDoubt(a, e)
	r.endLease(e, p, now)
	r.Attempts = max(r.Attempts-1, 0)
	r.addEntry(now, "released", "")
	return r, true
}

func (r *Row) restoreDoubt(a *Claim, e *Ending) {
	if !e.Sent {
		r.Doubt = a.Doubt
	}
}

// endLease keeps the fence, and asks for a verification where a write may land
// late.
func (r *Row) endLease(e *Ending, p *Policy, now time.Time) {
	r.Lease = Lease{Fence: r.Lease.Fence}
	if e.Unsure {
		r.raiseVerifyAt(now.Add(p.LateWriteWindow))
	}
}

// ScheduleVerify asks for a verification on behalf of a worker that sent a publish and
// then found its lease gone: no earlier than now and after the live lease.
func (r Row) ScheduleVerify(e *Ending, p *Policy, now time.Time) Row {
	at := now
	if e.Unsure {
		at = now.Add(p.LateWriteWindow)
	}
	if r.Live(now) && r.Lease.Until.After(at) {
		at = r.Lease.Until
	}
	r.raiseVerifyAt(at)
	r.addEntry(now, "suspected", "a former holder of the lease had sent a write")
	return r
}
