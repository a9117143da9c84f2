package engine

import (
	"strconv"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

func (e *Engine) landed(en *entry, p *pendingSwap, row ledger.Row) {
	en.row = row
	if p.finish != nil {
		e.noteEnd(en, p)
	}
	if p.renewed && en.attempt != nil {
		e.planRenewal(en, p.at)
		e.emit(Extend{Key: en.key, Fence: en.attempt.Fence, Deadline: e.cfg.Policy.LeaseUntil(p.at)})
	}
	for _, o := range p.observed {
		e.noteVerdict(en, o)
	}
	switch {
	case p.claim != nil:
		e.startAttempt(en, p)
	case p.retired:
		e.noteDeath(en, 0)
	}
	e.releaseWaiting(en)
	e.route(en)
}

func behind(row *ledger.Row, now time.Time) time.Duration {
	if !row.Settled() || row.EventTime.IsZero() {
		return 0
	}
	return max(0, now.Sub(row.EventTime))
}

func (e *Engine) noteEnd(en *entry, p *pendingSwap) {
	e.removeRunning(en)
	in, took := p.finish, e.now.Sub(en.began)
	switch {
	case p.refused:
		e.Stats.Lost++
		e.emit(Notice{Kind: LostLease, Key: en.key, Took: took, Detail: in.Failure.Message})
	case in.Result == Completed && in.Acted:
		e.Stats.Completed++
		e.emit(Notice{Kind: Committed, Key: en.key, Took: took, Behind: behind(&en.row, e.now)})
	case in.Result == Completed:
		e.Stats.NothingToDo++
		e.emit(Notice{Kind: NothingToDo, Key: en.key, Took: took})
	case in.Result == Released:
		e.Stats.Released++
		e.emitEnd(Notice{Kind: AttemptReleased, Key: en.key, Took: took})
	default:
		e.Stats.Failed++
		if p.next.Dead && !p.retired {
			e.noteDeath(en, took)
			return
		}
		what := AttemptFailed
		if in.Failure.Uncounted {
			what = AttemptUncounted
		}
		e.emit(Notice{Kind: what, Key: en.key, Took: took, Detail: in.Failure.Message})
	}
}

// took is 0 without an attempt.
func (e *Engine) noteDeath(en *entry, took time.Duration) {
	e.Stats.Died++
	e.emit(Notice{Kind: Died, Key: en.key, Took: took, Detail: en.row.LastError})
}

func (e *Engine) startAttempt(en *entry, p *pendingSwap) {
	e.addRunning(en, p.claim)
	e.Stats.Claimed++
	e.emitMetric(Notice{Kind: Claimed, Key: en.key, Took: en.waited(e.now)})
	en.since, en.began = time.Time{}, e.now
	if len(en.observe) > 0 {
		en.since = e.now // an event arrived during the claim
	}
	e.planRenewal(en, p.at)
	e.emit(Start{Claim: *p.claim, Deadline: e.cfg.Policy.LeaseUntil(p.at), Asked: p.at, Deliveries: en.traces})
	en.traces = nil
	if p.claim.TakenOver {
		e.Stats.TakenOver++
		e.emit(Notice{Kind: TookOver, Key: en.key, Detail: "fence " + strconv.FormatInt(p.claim.Fence, 10)})
	}
}

func (en *entry) waited(now time.Time) time.Duration {
	if en.since.IsZero() {
		return 0
	}
	return now.Sub(en.since)
}

func (e *Engine) planRenewal(en *entry, at time.Time) {
	en.renewAt, en.endsAt = at.Add(e.cfg.Policy.TTL/3), e.cfg.Policy.LeaseUntil(at)
	if !e.cfg.Policy.LeaseEnd.IsZero() {
		return
	}
	if e.nextScan.IsZero() || en.renewAt.Before(e.nextScan) {
		e.nextScan = en.renewAt
	}
}

// The slot is free at once, so that the write of the result can carry the claim of a waiting
// object.
func (e *Engine) finished(in *Finished) {
	en := e.entries[in.Key]
	if en == nil || en.attempt == nil || en.attempt.Fence != in.Fence || en.ending() {
		return // its entry was abandoned
	}
	if in.Row != nil && en.row.Held() && en.row.Lease.Fence == in.Fence {
		en.row = *in.Row // otherwise the cached row is newer
	}
	en.finish, en.renew = in, false
	e.slots.release(&en.slot)
	e.noteReceiver(in, en.began)
	e.route(en)
}

func (e *Engine) renewDue() {
	if e.nextScan.IsZero() || e.nextScan.After(e.now) {
		return
	}
	e.nextScan = time.Time{}
	for _, en := range e.running {
		if !en.renewAt.After(e.now) {
			en.renewAt = e.now.Add(e.cfg.Policy.TTL / 3)
			if !en.ending() {
				en.renew = true
				e.route(en)
			}
		}
		if e.nextScan.IsZero() || en.renewAt.Before(e.nextScan) {
			e.nextScan = en.renewAt
		}
	}
}

func (en *entry) ending() bool {
	return en.finish != nil || en.pending != nil && en.pending.finish != nil
}
