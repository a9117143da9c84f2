package ledger

import (
	"strconv"
	"time"
)

// Claim is the right to one attempt, as [Row.Claim] granted it, and what the row
// said at that moment. It is the claimant's only memory of it: a crash forgets it.
type Claim struct {
	Key         RowKey
	Fence       int64
	Number      int     // 1 for the first attempt at this Want
	Want        Version // at the claim: what a completion will have committed
	Have        Version
	Doubt       bool      // of the row, before the claim
	Forced      bool      // of the row
	CreatedTime time.Time // of the row
	// Verifying: the claim came because VerifyAt had passed. An output is
	// compared with its source even where the row looks settled.
	Verifying bool
	// TakenOver: another's lease had expired.
	TakenOver bool
	verifyAt  time.Time
}

// ClaimResult says whether a claim was granted, or why not.
type ClaimResult uint8

// The results of a claim. Only Granted and Retired change the row.
const (
	Granted  ClaimResult = iota + 1
	NotDue               // settled, backing off, or unreadable
	HeldLive             // another worker holds a live lease
	IsDead               // dead already
	Retired              // the attempts are used up: now dead
)

// Claim asks for the lease. The attempt is counted here and not where it ends,
// because a poison that kills the process never gets there. At the limit the
// row is retired instead.
//
// A claim that takes over an expired lease asks for a verification, because
// the former holder may yet write.
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

// claimable leaves dead rows and live leases to the caller.
func (r *Row) claimable(now time.Time) bool {
	if r.RetryAt.After(now) || r.Unreadable != nil {
		return false
	}
	return !r.Settled() || r.Held() || r.verifyDue(now)
}

func (r *Row) verifyDue(now time.Time) bool { return !r.VerifyAt.IsZero() && !r.VerifyAt.After(now) }

// raiseVerifyAt asks for a verification no earlier than at. A later one that is
// already asked for serves both.
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

// holds reports that the lease of a is still the row's, be it expired.
func (r *Row) holds(a *Claim) bool { return r.Held() && r.Lease.Fence == a.Fence }

// Renew prolongs the lease of a. It is refused when another has taken it over.
func (r Row) Renew(a *Claim, p *Policy, now time.Time) (Row, bool) {
	if !r.holds(a) {
		return r, false
	}
	r.Lease.Until = p.LeaseUntil(now).Add(p.Skew)
	r.UpdatedAt = now
	return r, true
}
