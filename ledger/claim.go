package ledger

import (
	"strconv"
	"time"
)

// Claim is the right to one attempt, with the facts of the row when [Row.Claim] granted it.
type Claim struct {
	Key         RowKey
	Fence       int64
	Number      int     // 1 for the first attempt at this Want
	Want        Version // a completion sets Have to it
	Have        Version
	Doubt       bool // Doubt of the row before the claim
	Forced      bool
	CreatedTime time.Time
	// Verifying: the attempt compares the output with its source, even if the row looks settled.
	Verifying bool
	// TakenOver: the claim replaced an expired lease.
	TakenOver bool
	verifyAt  time.Time
}

// ClaimResult is the result of a claim.
type ClaimResult uint8

// Only Granted and Retired change the row.
const (
	Granted  ClaimResult = iota + 1
	NotDue               // settled, backing off, or unreadable
	HeldLive             // another worker holds a live lease
	IsDead
	Retired // no attempts left: the row is dead now
)

// Claim tries to acquire the lease. It counts the attempt now, because an object that kills the
// process never ends its attempt. If no attempts are left, it makes the row dead instead.
//
// After a takeover, the former holder may still write, so Claim schedules a verification.
func (r Row) Claim(owner string, p *Policy, now time.Time) (Row, Claim, ClaimResult) {
	switch {
	case r.Dead:
		return r, Claim{}, IsDead
	case r.Live(now):
		return r, Claim{}, HeldLive
	case !r.claimable(now):
		return r, Claim{}, NotDue
	}
	takeover := r.Held()
	verifying := !takeover && r.verifyDue(now)
	if takeover {
		r.raiseVerifyAt(now.Add(p.LateWriteWindow))
	}
	if r.Attempts >= p.Attempts {
		return r.retire(now), Claim{}, Retired
	}
	a := Claim{
		Key: r.RowKey, Number: r.Attempts + 1, Want: r.Want, Have: r.Have, Doubt: r.Doubt, Forced: r.Forced,
		CreatedTime: r.CreatedTime, Verifying: verifying, TakenOver: takeover, verifyAt: r.VerifyAt,
	}
	a.Fence = max(r.Lease.Fence+1, now.UnixMilli())
	r.Attempts++
	r.RetryAt = time.Time{}
	r.Lease = Lease{Owner: owner, Fence: a.Fence, Until: p.LeaseUntil(now).Add(p.Skew)}
	r.Doubt = true
	what := "claimed"
	if takeover {
		what = "taken over"
	}
	r.addEntry(now, what, "fence "+strconv.FormatInt(a.Fence, 10)+" by "+owner)
	return r, a, Granted
}

func (r *Row) claimable(now time.Time) bool {
	if r.RetryAt.After(now) || r.Unreadable != nil {
		return false
	}
	return !r.Settled() || r.Held() || r.verifyDue(now)
}

func (r *Row) verifyDue(now time.Time) bool { return !r.VerifyAt.IsZero() && !r.VerifyAt.After(now) }

// raiseVerifyAt keeps a later verification that is already scheduled.
func (r *Row) raiseVerifyAt(at time.Time) {
	if at.After(r.VerifyAt) {
		r.VerifyAt = at
	}
}

func (r Row) retire(now time.Time) Row {
	r.Dead = true
	r.Lease = Lease{Fence: r.Lease.Fence}
	if r.LastError == "" {
		r.LastError = "the worker died during every attempt"
	}
	r.addEntry(now, "dead", "attempts used up: "+r.LastError)
	return r
}

// A lease holds even if it has expired.
func (r *Row) holds(a *Claim) bool { return r.Held() && r.Lease.Fence == a.Fence }

// Renew extends the lease of a, if the row has it.
func (r Row) Renew(a *Claim, p *Policy, now time.Time) (Row, bool) {
	if !r.holds(a) {
		return r, false
	}
	r.Lease.Until = p.LeaseUntil(now).Add(p.Skew)
	r.UpdatedAt = now
	return r, true
}
