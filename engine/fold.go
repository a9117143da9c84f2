package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// flush sends batches while there are intents and batches may be sent.
func (e *Engine) flush() {
	for len(e.batches) < e.cfg.Swaps && e.work() {
		if batch := e.foldDirty(e.foldReady(nil)); len(batch) > 0 {
			e.send(batch)
		}
	}
}

// work reports that some entry can be folded.
func (e *Engine) work() bool {
	if !e.dirty.empty() {
		return true
	}
	turn := e.turn
	en := e.nextReady()
	e.turn = turn // a look takes no turn
	return en != nil
}

// foldReady gives free slots to those who wait for one.
func (e *Engine) foldReady(batch []*entry) []*entry {
	for len(batch) < e.cfg.Batch {
		en := e.nextReady()
		if en == nil || !e.takeFirst(en) {
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
		changes[i] = ledger.Change{Key: en.key, Expect: en.row.Nonce, Row: &en.flight.next}
	}
	e.Stats.Swaps += int64(len(batch))
	e.batches[e.lastBatch] = batch
	e.emit(Swap{Batch: e.lastBatch, Changes: changes})
}

// fold applies an entry's intents to its row, and adds it to the batch if the
// row changes.
func (e *Engine) fold(en *entry, batch []*entry) []*entry {
	f := &flight{next: en.row, at: e.now}
	changed := e.foldObserve(en, f)
	changed = e.foldFinish(en, f) || changed
	changed = e.foldRenew(en, f) || changed
	changed = e.foldClaim(en, f) || changed
	if !changed {
		// What is known of the row answers already: sequencers only rise.
		e.landed(en, f, en.row)
		return batch
	}
	f.next.Nonce = e.nonce()
	en.flight = f
	return append(batch, en)
}

func (e *Engine) foldObserve(en *entry, f *flight) (changed bool) {
	f.observed, en.observe = en.observe, nil
	for i := range f.observed {
		o := &f.observed[i]
		ev := &o.item.Event
		if o.item.Trusted && f.next.ChangesShape(ev) {
			e.emit(Report{What: ShapeChanged, Key: en.key, Detail: "sequencer " + ev.Sequencer.Raw() + " after " + f.next.Want.Sequencer.Raw()})
		}
		f.next, o.verdict = f.next.Observe(ev, o.item.Trusted, e.now)
		changed = changed || o.verdict == ledger.Raised || o.verdict == ledger.Disordered
	}
	return changed
}

func (e *Engine) foldFinish(en *entry, f *flight) (changed bool) {
	in := en.finish
	if in == nil {
		return false
	}
	f.finish, en.finish = in, nil
	a, p := en.attempt, &e.cfg.Policy
	ok := false
	switch in.Result {
	case Completed:
		f.next, ok = f.next.Complete(a, &in.Ending, in.Acted, p, e.now)
	case Failed:
		f.next, ok = f.next.Fail(a, &in.Ending, &in.Failure, e.cfg.Rand.Float64(), p, e.now)
	case Released:
		f.next, ok = f.next.Release(a, &in.Ending, p, e.now)
	}
	if ok {
		return true
	}
	if in.Transactional && en.row.CommittedBy(a) {
		in.Result, in.Acted = Completed, in.Acted || in.Result != Completed
		return false
	}
	f.refused = true
	if !in.Ending.Sent || en.row.Nonce.IsZero() {
		return false
	}
	f.next = f.next.Suspect(&in.Ending, p, e.now)
	return true
}

// foldRenew prolongs the lease of a task that runs, unless its handler's own
// transaction has ended it, and the handler is about to return. One that was told to stop,
// by its deadline, and does not has no claim to more: it may have come to that
// while the renewal waited for an answer, or was refused.
func (e *Engine) foldRenew(en *entry, f *flight) (changed bool) {
	renew := en.renew && e.now.Before(en.endsAt)
	en.renew = false
	if !renew {
		return false
	}
	f.next, f.renewed = f.next.Renew(en.attempt, &e.cfg.Policy, e.now)
	if !f.renewed && !en.row.CommittedBy(en.attempt) {
		e.emit(Cancel{Key: en.key, Fence: en.attempt.Fence})
	}
	return f.renewed
}

// foldClaim claims what can be claimed, if there is a slot for it: in the same
// write that observed the event, or that ended the attempt before.
func (e *Engine) foldClaim(en *entry, f *flight) (changed bool) {
	if en.attempt != nil && f.finish == nil {
		return false // it runs
	}
	if !e.draining && e.claims(en, f) {
		switch next, a, why := f.next.Claim(e.cfg.Owner, &e.cfg.Policy, e.now); why {
		case ledger.Granted:
			f.next, f.claim = next, &a
			return true
		case ledger.Retired:
			f.next, f.retired = next, true
		}
	}
	e.give(en)
	return f.retired
}

// claims reports that the row as it will be can be claimed, and that there is a
// slot for it: one that foldReady took, or a free one for which no object waits.
func (e *Engine) claims(en *entry, f *flight) bool {
	return claimable(&f.next, e.now) && (en.slot || e.lane(en.key).ready.empty() && e.take(en, &f.next))
}

func (e *Engine) swapped(in *Swapped) {
	batch := e.batches[in.Batch]
	delete(e.batches, in.Batch)
	e.wrote(batch, in)
	for i, en := range batch {
		f, o := en.flight, &in.Outcomes[i]
		en.flight = nil
		switch {
		case errors.Is(o.Err, ledger.ErrRejected):
			e.abandon(en, f, o.Err, puzzledFor)
		case o.Err != nil:
			e.abandon(en, f, errors.Join(errStopping, o.Err), 0)
		case o.Applied:
			e.landed(en, f, f.next)
		default:
			e.refused(en, f, o.Current)
		}
	}
}

// refused takes the row that refused a swap; nil: there is none.
func (e *Engine) refused(en *entry, f *flight, current *ledger.Row) {
	e.Stats.Refused++
	row := ledger.Row{RowKey: en.key}
	if current != nil {
		row = *current
	}
	if row.Unreadable != nil {
		e.unreadable(&row)
		e.dropOwn(en)
		e.abandon(en, f, errors.Join(errPuzzled, row.Unreadable), puzzledFor)
		return
	}
	if f.supersededBy(&row, e.cfg.Owner, en.attempt) {
		if f.claim == nil { // the end of a lease does not vouch for the events
			en.observe, f.observed = append(f.observed, en.observe...), nil
		}
		e.landed(en, f, row)
		return
	}
	en.row = row
	if f.retired && row.Dead {
		e.died(en, 0) // perhaps of this write: to be told twice is better than never
	}
	e.putBack(en, f)
}

// supersededBy reports that a refused swap had landed after all, under an
// unclear answer, before another worker changed the row again: the fence that it
// granted, or the lease that it ended, tells. A lease that another worker ended
// by retiring the row tells of no landing: Have is behind, or the row is dead.
// Where both retired it the row does not tell who was first; but if a verification
// is missing that only this one asked for, it was the other.
func (f *flight) supersededBy(row *ledger.Row, owner string, was *ledger.Claim) bool {
	switch {
	case f.claim != nil:
		return row.Lease.Owner == owner && row.Lease.Fence == f.claim.Fence
	case f.finish != nil && !f.refused:
		return !row.Held() && row.Lease.Fence == was.Fence &&
			row.Have.Compare(f.next.Have) == 0 && (f.next.Dead || !row.Dead) &&
			!row.VerifyAt.Before(f.next.VerifyAt)
	}
	return false
}

// putBack restores the intents of a refused swap, to be folded over the row
// that refused it.
func (e *Engine) putBack(en *entry, f *flight) {
	en.observe = append(f.observed, en.observe...)
	if f.finish != nil { // else there may be one that came meanwhile
		en.finish = f.finish
	}
	if f.renewed && en.finish == nil {
		en.renew = true
	}
	if f.claim != nil {
		e.give(en)
	}
	e.route(en)
}

// abandon ends an entry of which nothing more can be known or done here.
// Deliveries are worth another try after a while.
func (e *Engine) abandon(en *entry, f *flight, err error, after time.Duration) {
	for _, o := range slices.Concat(en.waiting, f.observed, en.observe) {
		e.refuse(o.delivery, after, err)
	}
	if en.attempt != nil && f.finish == nil {
		e.emit(Cancel{Key: en.key, Fence: en.attempt.Fence})
	}
	e.give(en)
	e.end(en)
	e.leave(en)
	delete(e.entries, en.key)
}

// puzzledFor is when an event of an object whose row cannot be read is worth
// another try: by then a newer Pawl may have taken it.
const puzzledFor = time.Minute

// unreadable tells of a row that cannot be read, once for as many as are remembered.
func (e *Engine) unreadable(row *ledger.Row) {
	if nonce, ok := e.odd.Get(row.RowKey); ok && nonce == row.Nonce {
		return
	}
	e.odd.Add(row.RowKey, row.Nonce)
	e.emit(Report{What: Unreadable, Key: row.RowKey, Detail: row.Unreadable.Error()})
}
