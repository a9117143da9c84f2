package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

func (e *Engine) flush() {
	for len(e.batches) < e.cfg.Swaps && e.hasWork() {
		if batch := e.foldDirty(e.foldReady(nil)); len(batch) > 0 {
			e.send(batch)
		}
	}
}

func (e *Engine) hasWork() bool {
	if !e.dirty.empty() {
		return true
	}
	turn := e.turn
	en := e.nextReady()
	e.turn = turn
	return en != nil
}

func (e *Engine) foldReady(batch []*entry) []*entry {
	for len(batch) < e.cfg.Batch {
		en := e.nextReady()
		if en == nil || !e.acquireFirst(en) {
			return batch
		}
		batch = e.fold(en, batch)
	}
	return batch
}

func (e *Engine) foldDirty(batch []*entry) []*entry {
	for len(batch) < e.cfg.Batch && !e.dirty.empty() {
		batch = e.fold(e.dirty.pop(), batch)
	}
	return batch
}

func (e *Engine) send(batch []*entry) {
	e.lastBatch++
	changes := make([]ledger.Change, len(batch))
	for i, en := range batch {
		changes[i] = ledger.Change{Key: en.key, Expect: en.row.Nonce, Row: &en.pending.next}
	}
	e.Stats.Swaps += int64(len(batch))
	e.batches[e.lastBatch] = batch
	e.emit(Swap{Batch: e.lastBatch, Changes: changes})
}

func (e *Engine) fold(en *entry, batch []*entry) []*entry {
	p := &pendingSwap{next: en.row, at: e.now}
	changed := e.foldObserve(en, p)
	changed = e.foldFinish(en, p) || changed
	changed = e.foldRenew(en, p) || changed
	changed = e.foldClaim(en, p) || changed
	if !changed {
		// Sequencers only rise, so the cached row suffices.
		e.landed(en, p, en.row)
		return batch
	}
	p.next.Nonce = e.nonce()
	en.pending = p
	return append(batch, en)
}

func (e *Engine) foldObserve(en *entry, p *pendingSwap) (changed bool) {
	p.observed, en.observe = en.observe, nil
	for i := range p.observed {
		o := &p.observed[i]
		if ev := &o.item.Event; o.item.Trusted && p.next.ChangesShape(ev) {
			e.emit(Notice{Kind: ShapeChanged, Key: en.key, Detail: "sequencer " + ev.Sequencer.Raw() + " after " + p.next.Want.Sequencer.Raw()})
		}
		changed = p.observe(o, e.now) || changed
	}
	return changed
}

func (e *Engine) foldFinish(en *entry, p *pendingSwap) (changed bool) {
	if en.finish == nil {
		return false
	}
	p.finish, en.finish = en.finish, nil
	return p.applyResult(&en.row, en.attempt, &e.cfg, e.now)
}

// After the deadline, the handler has ignored its cancelled context. If the handler's own
// transaction has ended the lease, the handler is about to return, and its task is not cancelled.
func (e *Engine) foldRenew(en *entry, p *pendingSwap) (changed bool) {
	renew := en.renew && e.now.Before(en.endsAt)
	en.renew = false
	if !renew {
		return false
	}
	p.next, p.renewed = p.next.Renew(en.attempt, &e.cfg.Policy, e.now)
	if !p.renewed && !en.row.CommittedBy(en.attempt) {
		e.emit(Cancel{Key: en.key, Fence: en.attempt.Fence})
	}
	return p.renewed
}

// The claim shares a write with the event or the result before it.
func (e *Engine) foldClaim(en *entry, p *pendingSwap) (changed bool) {
	if en.attempt != nil && p.finish == nil {
		return false
	}
	changed = !e.draining && e.canClaim(en, p) && p.applyClaim(&e.cfg, e.now)
	if p.claim == nil {
		e.slots.release(&en.slot)
	}
	return changed
}

// canClaim acquires a missing slot, unless another object of the pipeline waits for one.
func (e *Engine) canClaim(en *entry, p *pendingSwap) bool {
	return claimable(&p.next, e.now) && (en.slot.held() || e.lane(en.key).ready.empty() && e.acquireSlot(en, &p.next))
}

func (e *Engine) swapped(in *Swapped) {
	batch := e.batches[in.Batch]
	delete(e.batches, in.Batch)
	e.emitWritten(batch, in)
	for i, en := range batch {
		p, o := en.pending, &in.Outcomes[i]
		en.pending = nil
		switch {
		case errors.Is(o.Err, ledger.ErrRejected):
			e.abandon(en, p, o.Err, unreadableRetry)
		case o.Err != nil:
			e.abandon(en, p, errors.Join(errStopping, o.Err), 0)
		case o.Applied:
			e.landed(en, p, p.next)
		default:
			e.refused(en, p, o.Current)
		}
	}
}

// current is the row that refused the swap, or nil.
func (e *Engine) refused(en *entry, p *pendingSwap, current *ledger.Row) {
	e.Stats.Refused++
	row := ledger.Row{RowKey: en.key}
	if current != nil {
		row = *current
	}
	if row.Unreadable != nil {
		e.reportUnreadable(&row)
		e.tracker.untrack(en)
		e.abandon(en, p, errors.Join(errUnreadable, row.Unreadable), unreadableRetry)
		return
	}
	if p.supersededBy(&row, e.cfg.Owner, en.attempt) {
		if p.claim == nil { // the completion landed, but its events may be missing
			en.observe, p.observed = append(p.observed, en.observe...), nil
		}
		e.landed(en, p, row)
		return
	}
	en.row = row
	if p.retired && row.Dead {
		e.noteDeath(en, 0) // this write may have made the row dead
	}
	e.restoreIntents(en, p)
}

func (e *Engine) restoreIntents(en *entry, p *pendingSwap) {
	en.observe = append(p.observed, en.observe...)
	if p.finish != nil { // keep a result that has arrived since
		en.finish = p.finish
	}
	if p.renewed && en.finish == nil {
		en.renew = true
	}
	if p.claim != nil {
		e.slots.release(&en.slot)
	}
	e.route(en)
}

func (e *Engine) abandon(en *entry, p *pendingSwap, err error, after time.Duration) {
	for _, o := range slices.Concat(en.waiting, p.observed, en.observe) {
		e.returnItem(o.delivery, after, err)
	}
	if en.attempt != nil {
		if p.finish == nil {
			e.emit(Cancel{Key: en.key, Fence: en.attempt.Fence})
		}
		e.emitEnd(Notice{Kind: AttemptAbandoned, Key: en.key, Detail: err.Error()})
	}
	e.slots.release(&en.slot)
	e.removeRunning(en)
	e.park(en)
	delete(e.entries, en.key)
}

// A newer Pawl may process the event after this redelivery delay.
const unreadableRetry = time.Minute

func (e *Engine) reportUnreadable(row *ledger.Row) {
	if nonce, ok := e.reportedUnreadable.Get(row.RowKey); ok && nonce == row.Nonce {
		return
	}
	e.reportedUnreadable.Add(row.RowKey, row.Nonce)
	e.emit(Notice{Kind: Unreadable, Key: row.RowKey, Detail: row.Unreadable.Error()})
}
