package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

type pendingSwap struct {
	next     ledger.Row
	observed []observation
	finish   *Finished
	refused  bool // the ending attempt has lost its lease
	renewed  bool
	claim    *ledger.Claim
	retired  bool
	at       time.Time // when it was sent
}

func (p *pendingSwap) observe(o *observation, now time.Time) bool {
	p.next, o.verdict = p.next.Observe(&o.item.Event, o.item.Trusted, now)
	return o.verdict == ledger.Raised || o.verdict == ledger.Disordered
}

// If the attempt lost its lease after it had sent a write, applyResult schedules a verification.
func (p *pendingSwap) applyResult(standing *ledger.Row, attempt *ledger.Claim, cfg *Config, now time.Time) bool {
	in, ok := p.finish, false
	switch in.Result {
	case Completed:
		p.next, ok = p.next.Complete(attempt, &in.Ending, in.Acted, &cfg.Policy, now)
	case Failed:
		p.next, ok = p.next.Fail(attempt, &in.Ending, &in.Failure, cfg.Rand.Float64(), &cfg.Policy, now)
	case Released:
		p.next, ok = p.next.Release(attempt, &in.Ending, &cfg.Policy, now)
	}
	if ok {
		return true
	}
	if in.Transactional && standing.CommittedBy(attempt) {
		in.Result, in.Acted = Completed, in.Acted || in.Result != Completed
		return false
	}
	p.refused = true
	if !in.Ending.Sent || standing.Nonce.IsZero() {
		return false
	}
	p.next = p.next.ScheduleVerify(&in.Ending, &cfg.Policy, now)
	return true
}

func (p *pendingSwap) applyClaim(cfg *Config, now time.Time) bool {
	next, claim, why := p.next.Claim(cfg.Owner, &cfg.Policy, now)
	switch why {
	case ledger.Granted:
		p.claim = &claim
	case ledger.Retired:
		p.retired = true
	default:
		return false
	}
	p.next = next
	return true
}

// supersededBy reports whether a refused swap had landed before another worker changed the row. A
// claim had landed if the row has its owner and fence. A result had landed if the row is not leased
// and has the swap's fence and Have. If another worker retired the row instead, the row differs from
// the swap: only the row is dead, or its verification is missing or earlier.
func (p *pendingSwap) supersededBy(row *ledger.Row, owner string, was *ledger.Claim) bool {
	switch {
	case p.claim != nil:
		return row.Lease.Owner == owner && row.Lease.Fence == p.claim.Fence
	case p.finish != nil && !p.refused:
		return !row.Held() && row.Lease.Fence == was.Fence &&
			row.Have.Compare(p.next.Have) == 0 && (p.next.Dead || !row.Dead) &&
			!row.VerifyAt.Before(p.next.VerifyAt)
	}
	return false
}
