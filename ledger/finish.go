package ledger

import (
	"time"

	"github.com/pawlhq/pawl/event"
)

// Read is the state of the object that an attempt read.
type Read struct {
	Kind     event.Kind // zero: the attempt did not read the object
	Identity Identity
	// ByEvent: Identity comes from the event.
	ByEvent bool
}

// Ending describes the effects of an ended attempt, as far as the worker knows them.
type Ending struct {
	Read Read
	// Sent: the attempt may have had an effect.
	Sent bool
	// Unsure: a publish request had no definite answer, and may still land.
	Unsure bool
}

// Complete sets Have to the claimed Want, with the identity that was read. It fails if the row does
// not have the attempt's lease. acted is false if there was nothing to do.
func (r Row) Complete(a *Claim, e *Ending, acted bool, p *Policy, now time.Time) (Row, bool) {
	if !r.holds(a) {
		return r, false
	}
	r.Have = Version{Sequencer: a.Want.Sequencer, Generation: a.Want.Generation, Kind: e.Read.Kind, Identity: e.Read.Identity}
	r.Doubt = false
	r.Forced = r.Forced && !r.Settled() // a redrive during the attempt applies
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

// Failure is the reason of a failed attempt.
type Failure struct {
	Message   string
	Permanent bool          // a retry with the same content is useless
	After     time.Duration // minimum back-off
	// Uncounted: the object is not the cause of the failure.
	Uncounted bool
}

// Fail ends a failed attempt. The row backs off, or becomes dead if the failure is permanent or no
// attempts are left. Want of a dead row names the content that was read, so that any other content
// revives it. A permanent failure of an outdated version does not make the row dead.
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

// After an uncounted failure, the back-off is computed as if there had been this number of failures.
// By default it is then random, up to 32 seconds.
const uncountedBackoff = 6

// OutageBackoff returns the back-off after failed probes.
func (p *Policy) OutageBackoff(probes int, jitter float64) time.Duration {
	return p.backoff(min(probes, uncountedBackoff), jitter)
}

// Release gives up the lease at shutdown. The attempt does not count.
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

// A write may still land after an unsure ending.
func (r *Row) endLease(e *Ending, p *Policy, now time.Time) {
	r.Lease = Lease{Fence: r.Lease.Fence}
	if e.Unsure {
		r.raiseVerifyAt(now.Add(p.LateWriteWindow))
	}
}

// ScheduleVerify schedules a verification for a worker that lost its lease after a publish. It
// follows the current live lease, if there is one.
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
