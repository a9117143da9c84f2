package sim

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Invariant is a property that must hold in every world.
type Invariant uint8

// I9 is checked by store/storetest and bucket/buckettest. Tests of this package check I13 and I14.
const (
	I1 Invariant = iota + 1
	I2
	I3
	I4
	I5
	I6
	I7
	I8
	I9
	I10
	I11
	I12
	I13
	I14
)

var invariants = [...]string{
	I1:  "at rest, every output matches its input",
	I2:  "an older result never replaces a newer one, except in cases that a verification repairs",
	I3:  "at most one completion with an effect per version, unless an attempt was unsure, started over or was forced",
	I4:  "everything is settled or dead once the faults have stopped",
	I5:  "Want, Have and the fence only rise",
	I6:  "the output of a removed object does not return permanently",
	I7:  "the ledger contains every acknowledged event, settled if the worker acknowledges settled deliveries only; every dead row is reported",
	I8:  "leases are exclusive, and every completion has its own lease and its own publish",
	I9:  "every store is linearizable per key",
	I10: "a poison object affects no other object",
	I11: "if nothing was lost, an audit writes nothing; no audit schedules more removals than its limit allows",
	I12: "claims and attempts are bounded",
	I13: "all ledger stores lead to the same final state",
	I14: "every fault occurred at every step",
}

// String returns a name like "I1".
func (i Invariant) String() string { return fmt.Sprintf("I%d", uint8(i)) }

// MarshalText implements encoding.TextMarshaler.
func (i Invariant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// Description returns the invariant as a phrase.
func (i Invariant) Description() string { return invariants[i] }

// Violation is a violated invariant.
type Violation struct {
	Invariant Invariant `json:"invariant"`
	Detail    string    `json:"what"`
}

// violatef records only the first violation of each invariant.
func (w *World) violatef(i Invariant, format string, args ...any) {
	for _, v := range w.violations {
		if v.Invariant == i {
			return
		}
	}
	v := Violation{i, fmt.Sprintf("+%v: ", w.Now) + fmt.Sprintf(format, args...)}
	w.violations = append(w.violations, v)
	if w.Trace != nil {
		w.logf(nil, "VIOLATION of %s: %s", v.Invariant, v.Detail)
	}
}

func (w *World) check() {
	for _, t := range w.oracles {
		t.everythingSettled()
		t.deadIsReported()
		t.claimsBounded()
		t.outputMatchesInput()
		t.staysRemoved()
	}
	w.auditFindsNothing()
}

// everythingSettled checks I4. The event queue is empty, so nothing will change.
func (t *oracle) everythingSettled() {
	switch {
	case t.Steps >= maxSteps:
		t.violatef(I4, "%s: not at rest after %d steps", t.key, maxSteps)
	case t.exists && !t.row.Settled() && !t.row.Dead, t.row.Held():
		t.violatef(I4, "%s: Want %s, Have %s, held by %q, retry %v", t.key, t.row.Want.Order(), t.row.Have.Order(), t.row.Lease.Owner, sinceEpoch(t.row.RetryAt))
	case t.row.Dead && !t.poisoned():
		t.violatef(I4, "%s: dead, redriven and dead again: %s", t.key, t.row.LastError)
	}
	for _, m := range t.messages {
		if !m.acked {
			t.violatef(I4, "message %d was never acknowledged", m.id)
		}
	}
}

// In settleTimeout, leases expire, attempts back off, and each worker may freeze for two hours.
const settleTimeout = 3 * time.Hour

// settlesInTime checks I4. Worlds without sweeps are exempt: without an order, one copy of a
// message may raise Want after another copy was acknowledged.
func (t *oracle) settlesInTime(before, after *ledger.Row) {
	if t.plan.noSweep {
		return
	}
	rested, rests := before.Settled() || before.Dead, after.Settled() || after.Dead
	switch {
	case rested && !rests, after.Want.Compare(before.Want) != 0:
		t.unsettledAt = t.Now
	case !rested && rests && t.Now > max(t.unsettledAt, t.faultsEnd)+settleTimeout:
		t.violatef(I4, "%s: settled or dead only after %v", t.key, t.Now-t.unsettledAt)
	}
}

// outputMatchesInput checks I1. Poison objects are exempt.
func (t *oracle) outputMatchesInput() {
	v := t.object.current()
	if v == nil || v.kind != event.Created || t.poisoned() {
		return
	}
	if t.kind.elsewhere() {
		if last, any := t.lastAccepted(); !any || last.body != v.body {
			t.violatef(I1, "%s: the last effect was for %q, the object is %q", t.key, last.body, v.body)
		}
		return
	}
	switch out := t.objectStore.stored[t.ref]; {
	case out == nil:
		t.violatef(I1, "%s: no output, the object is %q", t.key, v.body)
	case out.body != f(v.body):
		t.violatef(I1, "%s: the output is %q, the object %q", t.key, out.body, v.body)
	}
}

// staysRemoved checks I6.
func (t *oracle) staysRemoved() {
	v := t.object.current()
	if v == nil || v.kind != event.Removed {
		return
	}
	if out := t.objectStore.stored[t.ref]; out != nil {
		t.violatef(I6, "%s: the object is removed, but its output is %q", t.key, out.body)
	}
	if last, any := t.lastAccepted(); any && last.kind != event.Removed {
		t.violatef(I6, "%s: the object is removed, but the last effect was for %q", t.key, last.body)
	}
}

// lastAccepted is the last effect for a receiver that rejects lower fences.
func (t *oracle) lastAccepted() (last effect, any bool) {
	for _, e := range t.effects {
		if e.fence >= last.fence {
			last, any = e, true
		}
	}
	return last, any
}

// outputNotOlder checks I2 for outputs. An attempt records the ETag of the output before it reads
// the input, and its write has that ETag as condition. It can publish an older version in three
// cases. Another output has the same bytes, the output was created and removed meanwhile, or the
// store ignores the condition. A verification repairs these cases, so they are exempt. In event
// order, the attempt may read a newer version than its claim has, so the claims are compared.
func (t *oracle) outputNotOlder(claim *ledger.Claim, version, pinned int, guarded bool) {
	older := version < t.visible
	if t.kind == trusting {
		older = claim.Want.Compare(t.publishedWant) < 0
		t.publishedWant = claim.Want
	}
	switch {
	case !older:
	case pinned == t.changes || !guarded:
		t.violatef(I2, "%s: version %d replaces version %d", t.key, version, t.visible)
	default:
		t.setbacks++
	}
}

// effectsInOrder checks I2 for external effects. If a store hides a new object, an attempt may act
// on an earlier removal, so such effects are exempt.
func (t *oracle) effectsInOrder(e *effect) {
	if t.plan.eventual && e.kind == event.Removed {
		return
	}
	for i := range t.effects {
		if o := &t.effects[i]; e.heldLease && o.heldLease && e.version < o.version {
			t.violatef(I2, "%s: the effect of version %d came after that of version %d", t.key, e.version, o.version)
		}
	}
}

// effectCommittedOnce checks I3.
func (t *oracle) effectCommittedOnce(fin *engine.Finished, after *ledger.Row) {
	same := t.lastEffect.Kind == fin.Ending.Read.Kind && (t.lastEffect.Kind == event.Removed || t.lastEffect.Identity.Same(fin.Ending.Read.Identity))
	switch t.kind {
	case trusting:
		same = t.lastEffect.Compare(after.Have) == 0
	case acting: // removals look alike
		last := t.lastEffectVersion
		t.lastEffectVersion = t.effectVersion(fin.Fence)
		same = same && t.lastEffectVersion == last
	}
	if same && !t.repeatable {
		t.violatef(I3, "%s: the effect of %s was committed twice", t.key, after.Have.Order())
	}
}

// I3: an attempt has one effect per HEAD. It sends another HEAD if the object changed.
func (t *oracle) oneEffectPerRead(e *effect) {
	for i := range t.effects {
		if o := &t.effects[i]; o.fence == e.fence && o.inputVersions == e.inputVersions {
			t.violatef(I3, "%s: fence %d had the effect of version %d twice", t.key, e.fence, e.version)
		}
	}
}

// transactionCommittedOnce checks I3 without exemptions, for effects that the ledger commits
// together with Have.
func (t *oracle) transactionCommittedOnce(before, after *ledger.Row) {
	had := before.Have
	same := had.Kind == after.Have.Kind && (had.Kind == event.Removed || had.Identity.Same(after.Have.Identity))
	if same && !before.Forced {
		t.violatef(I3, "%s: the effect of %s was committed twice", t.key, after.Have.Order())
	}
}

// versionsOnlyRise checks I5. A row that is purged and created again has new versions, but its
// fence still rises.
func (t *oracle) versionsOnlyRise(before, after *ledger.Row) {
	if after.Want.Compare(before.Want) < 0 || after.Have.Compare(before.Have) < 0 {
		t.violatef(I5, "%s: Want %s after %s, Have %s after %s", t.key, after.Want.Order(), before.Want.Order(), after.Have.Order(), before.Have.Order())
	}
	if after.Lease.Fence < before.Lease.Fence || after.Lease.Fence < t.highestFence && after.Lease.Fence != 0 {
		t.violatef(I5, "%s: fence %d after %d", t.key, after.Lease.Fence, t.highestFence)
	}
}

// ackIsCovered checks I7, for acknowledgments.
func (w *World) ackIsCovered(n *node, m *message) {
	for i := range m.events {
		e := &m.events[i]
		for _, t := range w.oracles {
			if t.object.ref.Bucket != e.Object.Bucket || t.object.ref.Key != e.Object.Key {
				continue
			}
			known := t.exists && !t.row.EventTime.Before(e.Time)
			settled := true
			if w.plan.trusted {
				known = t.exists && t.row.Want.Sequencer.CompareSameKey(e.Sequencer) >= 0
				settled = max(t.highestSettled.Sequencer.CompareSameKey(e.Sequencer), t.highestDead.Sequencer.CompareSameKey(e.Sequencer)) >= 0 ||
					t.row.Want.Sequencer.CompareSameKey(e.Sequencer) > 0
			}
			if !known || w.plan.ackSettled && !settled {
				w.violatef(I7, "%s: %s acknowledged %s, but the ledger has Want %s, settled %s", t.key, n.name, e.Name, t.row.Want.Order(), t.highestSettled.Order())
			}
		}
	}
}

// I7: a worker that did not crash must have reported the dead row.
func (t *oracle) deadIsReported() {
	if t.exists && t.row.Dead && !t.reported && t.declaredDeadBy != nil && !t.declaredDeadBy.gone {
		t.violatef(I7, "%s: dead, but not reported", t.key)
	}
}

// leasesExclusive checks I8, if the clocks differ by at most the skew margin.
func (t *oracle) leasesExclusive(by *node, before *ledger.Row) {
	if !t.clocksWithinSkew() || !before.Held() {
		return
	}
	for _, n := range t.nodes {
		if k := n.task(t.key, before.Lease.Fence); k != nil && n != by && t.Now < k.deadline {
			t.violatef(I8, "%s: fence %d was taken over from %s before its deadline at %v", t.key, k.fence, n.name, k.deadline)
		}
	}
}

func (w *World) clocksWithinSkew() bool { return !w.plan.skewed }

// startsWithGrantedFence checks I8.
func (n *node) startsWithGrantedFence(k *task) {
	t := n.oracleOf(k.key)
	if t.highestFence < k.fence {
		n.violatef(I8, "%s: %s starts with fence %d, but the ledger has granted %d", k.key, n.name, k.fence, t.highestFence)
	}
}

// I8: an attempt that completes a row has itself published the output.
func (t *oracle) completedOutputExists(fin *engine.Finished, after *ledger.Row) {
	if t.kind.elsewhere() || fin.Ending.Read.Kind != event.Created {
		return
	}
	want := after.Have.Identity.String()
	if fin.Ending.Read.ByEvent {
		want = "order=" + after.Have.Order()
	}
	for _, source := range t.publishedSources[fin.Fence] {
		if source == want {
			return
		}
	}
	t.violatef(I8, "%s: fence %d completed %s, but published %q", t.key, fin.Fence, want, t.publishedSources[fin.Fence])
}

// I10: in a world whose only fault is a poison object, no other object dies. Objects with one or
// two attempts are exempt: the first failure does not show which object is poison. Event order is
// also exempt: an attempt may fail because the object was removed.
func (t *oracle) poisonIsIsolated(row *ledger.Row) {
	p := &t.plan
	wrong := p.faulty > 0 || p.fails > 0 || p.slow > 0 || p.drains > 0 || p.skewed
	if wrong || p.attempts < 3 || t.kind == trusting || t.object.everPoisoned() {
		return
	}
	t.violatef(I10, "%s: dead without a fault of its own: %s", t.key, row.LastError)
}

// I10: a poison version does not kill a later version that no attempt has processed. Untrusted
// events are exempt: they may look like copies of earlier ones.
func (t *oracle) deadVersionWasTried(row *ledger.Row) {
	if t.plan.trusted && row.Want.Compare(t.claimedWant) != 0 {
		t.violatef(I10, "%s: dead at version %s, but only %s was tried", t.key, row.Want.Order(), t.claimedWant.Order())
	}
}

// auditFindsNothing checks I11. Two untrusted events of the same second may have made a row dead. Then
// either version may be the cause until an audit has checked the row.
func (w *World) auditFindsNothing() {
	w.Now += 2 * settle
	looked := w.plan.trusted || w.plan.loses > 0
	for _, t := range w.oracles {
		if t.row.Dead && !looked || len(w.violations) > 0 {
			continue
		}
		w.spawn(nil, func(th *thread) {
			if found, err := w.auditRow(th, t, &storeView{objectStore: &w.objectStore, thread: th}, 1, true); err == nil && found.Lost() > 0 {
				w.violatef(I11, "%s: a second audit finds %+v", t.key, found)
			}
		})
	}
	w.loop()
}

// claimsBounded checks I12. Copies of an event cause no new attempts.
func (t *oracle) claimsBounded() {
	if limit := t.plan.attempts*(len(t.object.versions)+t.completions+t.resets) + t.released; t.claims > limit {
		t.violatef(I12, "%s: %d claims, want at most %d", t.key, t.claims, limit)
	}
}
