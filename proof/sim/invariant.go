package sim

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Invariant is something that must hold in every world.
type Invariant uint8

// The invariants. What each says, and why, stands at the function that holds
// it. I9 (every store is linearizable for each key) is held by
// store/storetest and bucket/buckettest, I13 (all stores lead to the same
// end) and I14 (every fault was met at every step) by tests of this package:
// they are not about one world.
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
	I1:  "at rest every output is that of its input",
	I2:  "no older result replaces a newer one, but for the moment that a verification heals",
	I3:  "at most one completion with an effect for each version, unless an attempt was unsure, started over or was forced",
	I4:  "everything is settled or dead when the troubles are over",
	I5:  "Want, Have and the fence only rise",
	I6:  "what was removed does not come back for good",
	I7:  "what was acknowledged is in the ledger, settled if that was asked, or dead and reported",
	I8:  "leases are one at a time, and every completion has its own, and its publish",
	I9:  "every store is linearizable for each key",
	I10: "a poisonous object disturbs no other",
	I11: "an audit of a converged bucket writes nothing, and no audit raises removals that its brake forbids",
	I12: "claims and attempts are bounded",
	I13: "all ledger stores lead to the same end",
	I14: "every fault was met at every step",
}

// String returns "I1" and the like.
func (i Invariant) String() string { return fmt.Sprintf("I%d", uint8(i)) }

// MarshalText implements encoding.TextMarshaler.
func (i Invariant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// Description returns the invariant in words.
func (i Invariant) Description() string { return invariants[i] }

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant Invariant `json:"invariant"`
	Detail    string    `json:"what"`
}

// violatef notes a violation, the first of each invariant.
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

// check holds what must be true at rest.
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

// everythingSettled is I4. A world whose queue is empty has nobody left who would do
// anything: what is not settled or dead now never will be.
func (t *oracle) everythingSettled() {
	switch {
	case t.Steps >= maxSteps:
		t.violatef(I4, "%s: no rest after %d steps", t.key, maxSteps)
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

// settleTimeout is how long a row may take that has something to do: leases expire,
// attempts back off, and every worker may stand still for two hours.
const settleTimeout = 3 * time.Hour

// settlesInTime is I4: it does not take for ever, either. Where nobody sweeps it may: one
// copy of a message without an order raises the row, and another acknowledges it.
func (t *oracle) settlesInTime(before, after *ledger.Row) {
	if t.plan.noSweep {
		return
	}
	rested, rests := before.Settled() || before.Dead, after.Settled() || after.Dead
	switch {
	case rested && !rests, after.Want.Compare(before.Want) != 0:
		t.unsettledAt = t.Now
	case !rested && rests && t.Now > max(t.unsettledAt, t.faultsEnd)+settleTimeout:
		t.violatef(I4, "%s: settled, or dead, after %v", t.key, t.Now-t.unsettledAt)
	}
}

// outputMatchesInput is I1: the promise itself. Objects that no handler can take
// are excused.
func (t *oracle) outputMatchesInput() {
	v := t.object.current()
	if v == nil || v.kind != event.Created || t.poisoned() {
		return
	}
	if t.kind.elsewhere() {
		if last, any := t.lastAccepted(); !any || last.body != v.body {
			t.violatef(I1, "%s: the last effect was that of %q, the object is %q", t.key, last.body, v.body)
		}
		return
	}
	switch out := t.objectStore.stored[t.ref]; {
	case out == nil:
		t.violatef(I1, "%s: there is no output, the object is %q", t.key, v.body)
	case out.body != f(v.body):
		t.violatef(I1, "%s: the output is %q, the object %q", t.key, out.body, v.body)
	}
}

// staysRemoved is I6: the tombstone works.
func (t *oracle) staysRemoved() {
	v := t.object.current()
	if v == nil || v.kind != event.Removed {
		return
	}
	if out := t.objectStore.stored[t.ref]; out != nil {
		t.violatef(I6, "%s: the object is removed, and the output is %q", t.key, out.body)
	}
	if last, any := t.lastAccepted(); any && last.kind != event.Removed {
		t.violatef(I6, "%s: the object is removed, and the last effect was that of %q", t.key, last.body)
	}
}

// lastAccepted returns the last effect that a receiver accepts which refuses
// smaller fences than it has seen.
func (t *oracle) lastAccepted() (last effect, any bool) {
	for _, e := range t.effects {
		if e.fence >= last.fence {
			last, any = e, true
		}
	}
	return last, any
}

// outputNotOlder is I2 for outputs. A change whose condition holds over the very
// output that was pinned, before the input was read, cannot be older than it.
// Over another one with the same bytes, or an absence that came back, or in a
// store that ignores the condition, it can: that is what the verification heals.
// Without a condition nothing excuses it.
//
// In event order what is read may be newer than what was asked for: there the
// order of what was asked for counts.
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

// effectsInOrder is I2 for effects elsewhere: whoever has the lease acts on what is no
// older than what was acted on under an earlier lease. A store that hides a new
// object from one and shows it to another has them act on an earlier removal, as
// long as nobody has told them of the object; the event that does heals it.
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

// effectCommittedOnce is I3.
func (t *oracle) effectCommittedOnce(fin *engine.Finished, after *ledger.Row) {
	same := t.lastEffect.Kind == fin.Ending.Read.Kind && (t.lastEffect.Kind == event.Removed || t.lastEffect.Identity.Same(fin.Ending.Read.Identity))
	switch t.kind {
	case trusting:
		same = t.lastEffect.Compare(after.Have) == 0
	case acting: // removals are all alike, but they are not one
		last := t.lastEffectVersion
		t.lastEffectVersion = t.effectVersion(fin.Fence)
		same = same && t.lastEffectVersion == last
	}
	if same && !t.repeatable {
		t.violatef(I3, "%s: the effect of %s was committed twice", t.key, after.Have.Order())
	}
}

// oneEffectPerRead is I3, too: an attempt has one effect for each look at the object.
// It looks again where the object has changed under it.
func (t *oracle) oneEffectPerRead(e *effect) {
	for i := range t.effects {
		if o := &t.effects[i]; o.fence == e.fence && o.inputVersions == e.inputVersions {
			t.violatef(I3, "%s: fence %d had the effect of version %d twice", t.key, e.fence, e.version)
		}
	}
}

// transactionCommittedOnce is I3 without any excuse: what is committed together with Have
// happens once for each version that is acted on, whatever became of its answer.
func (t *oracle) transactionCommittedOnce(before, after *ledger.Row) {
	had := before.Have
	same := had.Kind == after.Have.Kind && (had.Kind == event.Removed || had.Identity.Same(after.Have.Identity))
	if same && !before.Forced {
		t.violatef(I3, "%s: the effect of %s was committed twice", t.key, after.Have.Order())
	}
}

// versionsOnlyRise is I5. A row that was purged and comes back begins anew, but its
// fence does not.
func (t *oracle) versionsOnlyRise(before, after *ledger.Row) {
	if after.Want.Compare(before.Want) < 0 || after.Have.Compare(before.Have) < 0 {
		t.violatef(I5, "%s: Want %s after %s, Have %s after %s", t.key, after.Want.Order(), before.Want.Order(), after.Have.Order(), before.Have.Order())
	}
	if after.Lease.Fence < before.Lease.Fence || after.Lease.Fence < t.highestFence && after.Lease.Fence != 0 {
		t.violatef(I5, "%s: fence %d after %d", t.key, after.Lease.Fence, t.highestFence)
	}
}

// ackIsCovered is I7 at the moment of an acknowledgement.
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
				w.violatef(I7, "%s: %s acknowledged %s, and the ledger knows %s, settled %s", t.key, n.name, e.Name, t.row.Want.Order(), t.highestSettled.Order())
			}
		}
	}
}

// deadIsReported is I7 for what is dead: nobody may find out by chance. A process
// that crashed could not tell.
func (t *oracle) deadIsReported() {
	if t.exists && t.row.Dead && !t.reported && t.declaredDeadBy != nil && !t.declaredDeadBy.gone {
		t.violatef(I7, "%s: dead, and nobody was told", t.key)
	}
}

// leasesExclusive is I8: nobody gets a lease while another may still rely on his. It
// is demanded where clocks are as right as the margin for skew says.
func (t *oracle) leasesExclusive(by *node, before *ledger.Row) {
	if !t.clocksWithinSkew() || !before.Held() {
		return
	}
	for _, n := range t.nodes {
		if k := n.task(t.key, before.Lease.Fence); k != nil && n != by && t.Now < k.deadline {
			t.violatef(I8, "%s: fence %d was taken from %s, whose deadline is at %v", t.key, k.fence, n.name, k.deadline)
		}
	}
}

func (w *World) clocksWithinSkew() bool { return !w.plan.skewed }

// startsWithGrantedFence is I8: no attempt begins before the ledger has granted its fence.
func (n *node) startsWithGrantedFence(k *task) {
	t := n.oracleOf(k.key)
	if t.highestFence < k.fence {
		n.violatef(I8, "%s: %s begins with fence %d, and the ledger has granted %d", k.key, n.name, k.fence, t.highestFence)
	}
}

// completedOutputExists is I8: what is completed was published, by this very attempt.
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
	t.violatef(I8, "%s: fence %d completed %s, and has published %q", t.key, fin.Fence, want, t.publishedSources[fin.Fence])
}

// poisonIsIsolated is I10. Where nothing is wrong but a poisonous object, none other
// dies. One of two attempts or less may: the first time nobody can know whom it is
// claimed with. Events alone do not tell that an object is gone by now, and then
// it fails.
func (t *oracle) poisonIsIsolated(row *ledger.Row) {
	p := &t.plan
	wrong := p.faulty > 0 || p.fails > 0 || p.slow > 0 || p.drains > 0 || p.skewed
	if wrong || p.attempts < 3 || t.kind == trusting || t.object.everPoisoned() {
		return
	}
	t.violatef(I10, "%s: dead, and nothing was wrong with it: %s", t.key, row.LastError)
}

// deadVersionWasTried is I10, too: what cannot be handled does not take a later version of
// its own object with it that nobody has tried. Where events are not trusted
// nobody can tell a later version from a copy.
func (t *oracle) deadVersionWasTried(row *ledger.Row) {
	if t.plan.trusted && row.Want.Compare(t.claimedWant) != 0 {
		t.violatef(I10, "%s: dead of %s, and only %s was tried", t.key, row.Want.Order(), t.claimedWant.Order())
	}
}

// auditFindsNothing is I11. A dead row is one of an object that no handler can take: no
// audit may try it again for ever. But a row that died of one of two untrusted
// events of one second may have died of the other, until an audit has looked.
func (w *World) auditFindsNothing() {
	w.Now += 2 * settle
	looked := w.plan.trusted || w.plan.loses > 0
	for _, t := range w.oracles {
		if t.row.Dead && !looked || len(w.violations) > 0 {
			continue
		}
		w.spawn(nil, func(th *thread) {
			if found, err := w.auditRow(th, t, &storeView{objectStore: &w.objectStore, thread: th}, 1, true); err == nil && found.Lost() > 0 {
				w.violatef(I11, "%s: an audit finds again: %+v", t.key, found)
			}
		})
	}
	w.loop()
}

// claimsBounded is I12. An object gets fresh attempts with each version, each
// completion and each redrive, and not with every copy of an event.
func (t *oracle) claimsBounded() {
	if limit := t.plan.attempts*(len(t.object.versions)+t.completions+t.resets) + t.released; t.claims > limit {
		t.violatef(I12, "%s: %d claims, at most %d are needed", t.key, t.claims, limit)
	}
}
