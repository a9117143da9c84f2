package sim

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// oracle is the true history of one row, its object and its output.
type oracle struct {
	*World
	key    ledger.RowKey
	kind   kindOf
	object *object
	ref    event.Object

	row         ledger.Row
	exists      bool
	dueAt       time.Time
	unsettledAt time.Duration

	highestFence int64
	owner        *node    // of the highest fence
	endings      []ending // not yet processed by the engine

	claims, completions, resets, released int
	repeatable                            bool // another effect at the same version is allowed
	lastEffect, claimedWant               ledger.Version
	lastEffectVersion                     int // of the last external effect

	declaredDeadBy *node
	reported       bool
	highestSettled ledger.Version
	highestDead    ledger.Version

	changes          int                // of the output
	visible          int                // version of the object that the output shows
	publishedWant    ledger.Version     // in event order: the claimed version of the last output
	publishedSources map[int64][]string // by fence
	effects          []effect

	committer *node // whose handler's transaction is being committed
}

type ending struct {
	by       *node
	fin      engine.Finished
	recorded bool // in the ledger
	lost     bool // the lease was lost after a write was sent
}

type effect struct {
	fence         int64
	kind          event.Kind
	body          string
	version       int
	inputVersions int // object versions at the last HEAD
	heldLease     bool
}

func newOracle(w *World, kind kindOf, th *object) *oracle {
	t := &oracle{
		World: w, kind: kind, object: th, visible: -1,
		key: ledger.RowKey{Pipeline: kindNames[kind], Bucket: th.ref.Bucket, Key: th.ref.Key},
	}
	t.ref = event.Object{Bucket: outputs, Key: t.key.Pipeline + "/" + t.key.Bucket + "/" + t.key.Key}
	return t
}

func (w *World) oracleOfOutput(ref event.Object) *oracle {
	for _, t := range w.oracles {
		if t.ref == ref {
			return t
		}
	}
	w.violatef(I1, "the output %s belongs to no object", ref.Key)
	return newOracle(w, publishing, &object{})
}

// rowWritten processes a write that has landed. by is nil for an operator.
func (t *oracle) rowWritten(by *node, next *ledger.Row) {
	before := t.row
	if next == nil {
		t.row, t.exists, t.dueAt = ledger.Row{RowKey: t.key}, false, time.Time{}
		t.lastEffect, t.publishedWant = ledger.Version{}, ledger.Version{}
		return
	}
	t.row, t.exists, t.dueAt = *next, true, next.Due()
	after := &t.row
	if t.Trace != nil {
		t.World.logf(by, "writes %s: want %s have %s fence %d %q attempts %d doubt %v forced %v dead %v verify %v: %s", t.key, after.Want.Order(), after.Have.Order(),
			after.Lease.Fence, after.Lease.Owner, after.Attempts, after.Doubt, after.Forced, after.Dead, sinceEpoch(after.VerifyAt), after.History[0].What)
	}
	t.versionsOnlyRise(&before, after)
	if after.VerifyAt.After(before.VerifyAt) {
		t.verifyScheduled(by)
	}
	t.settlesInTime(&before, after)
	if before.Held() && (after.Lease.Fence != before.Lease.Fence || !after.Held()) {
		t.leaseEnded(by, &before, after)
	} else if versionChanged(&before.Have, &after.Have) {
		t.violatef(I8, "%s: Have changed to %s without a lease", t.key, after.Have.Order())
	}
	if after.Lease.Fence != before.Lease.Fence {
		t.leaseGranted(by, &before, after)
	}
	if after.Dead && !before.Dead {
		t.declaredDeadBy, t.reported = by, false
		t.deadVersionWasTried(after)
		t.poisonIsIsolated(after)
	}
	if after.Dead && after.Want.Compare(t.highestDead) > 0 {
		t.highestDead = after.Want
	}
	if after.Settled() && after.Have.Compare(t.highestSettled) > 0 {
		t.highestSettled = after.Have
	}
}

func sinceEpoch(at time.Time) any {
	if at.IsZero() {
		return "-"
	}
	return at.Sub(epoch)
}

func versionChanged(before, after *ledger.Version) bool {
	return before.Compare(*after) != 0 || before.Kind != after.Kind || !before.Identity.Same(after.Identity)
}

func (t *oracle) leaseEnded(by *node, before, after *ledger.Row) {
	if t.committer != nil && before.Lease.Owner == t.committer.name {
		t.completions++
		t.transactionCommittedOnce(before, after)
		return
	}
	e := t.unrecordedEnding(by, before.Lease.Fence)
	switch {
	case by != nil && e != nil && before.Lease.Owner == by.name:
		e.recorded = true
		switch {
		case e.fin.Result == engine.Completed:
			t.completionRecorded(e, after)
		case e.fin.Result == engine.Released || e.fin.Failure.Uncounted:
			t.released++
		}
		t.repeatable = t.repeatable || e.fin.Ending.Sent && e.fin.Result != engine.Completed
		return
	case versionChanged(&before.Have, &after.Have):
		t.violatef(I8, "%s: a process without the lease changed Have to %s", t.key, after.Have.Order())
	case by == nil || by.clock().Before(before.Lease.Until) && t.clocksWithinSkew():
		t.violatef(I8, "%s: the lease of fence %d was taken over before it expired", t.key, before.Lease.Fence)
	}
	t.repeatable = true // the former holder's effects are unknown
}

func (t *oracle) unrecordedEnding(by *node, fence int64) *ending {
	for i := range t.endings {
		if e := &t.endings[i]; e.by == by && e.fin.Fence == fence && !e.recorded {
			return e
		}
	}
	return nil
}

func (t *oracle) completionRecorded(e *ending, after *ledger.Row) {
	t.completions++
	fin := &e.fin
	if t.hadEffect(fin) {
		t.effectCommittedOnce(fin, after)
		t.completedOutputExists(fin, after)
		t.lastEffect = after.Have
	} else if t.lastEffect.Kind != after.Have.Kind {
		t.lastEffect = ledger.Version{} // the object was unchanged
	}
	// A verification may repeat the effect. External effects cannot be verified.
	verifies := !t.kind.elsewhere() && !after.VerifyAt.IsZero()
	t.repeatable = fin.Ending.Unsure || verifies || after.Forced || t.verifyOutstanding()
}

// An attempt that starts over may find its output already published by another attempt.
func (t *oracle) hadEffect(fin *engine.Finished) bool {
	return fin.Acted || slices.ContainsFunc(t.effects, func(e effect) bool { return e.fence == fin.Fence })
}

// A worker also schedules a verification if it lost its lease after it had sent a write.
func (t *oracle) verifyScheduled(by *node) {
	t.repeatable = true
	for i := range t.endings {
		if e := &t.endings[i]; e.by == by && e.lost {
			e.lost = false
		}
	}
}

func (t *oracle) verifyOutstanding() bool {
	return slices.ContainsFunc(t.endings, func(e ending) bool { return e.lost && !e.by.gone })
}

func (t *oracle) leaseGranted(by *node, before, after *ledger.Row) {
	t.claims++
	t.claimedWant = after.Want
	if after.Lease.Fence <= t.highestFence {
		t.violatef(I5, "%s: fence %d was granted after %d", t.key, after.Lease.Fence, t.highestFence)
	}
	t.highestFence = max(t.highestFence, after.Lease.Fence)
	t.owner = by
	t.leasesExclusive(by, before)
}

// attemptFinished runs before the engine processes the end.
func (t *oracle) attemptFinished(by *node, fin *engine.Finished) {
	lost := fin.Ending.Sent && (!t.row.Held() || t.row.Lease.Fence != fin.Fence)
	t.endings = append(t.endings, ending{by: by, fin: *fin, lost: lost})
	t.repeatable = t.repeatable || lost
}

func (t *oracle) processEnded() { t.repeatable = true }

func (t *oracle) attemptsReset(force bool) {
	t.resets++
	t.repeatable = t.repeatable || force
}

func (t *object) everPoisoned() bool {
	return slices.ContainsFunc(t.versions, func(v version) bool { return v.poison != harmless })
}

func (t *oracle) poisoned() bool {
	v := t.object.current()
	return v != nil && v.poison != harmless
}

func (t *oracle) effectVersion(fence int64) int {
	for i := len(t.effects) - 1; i >= 0; i-- {
		if e := &t.effects[i]; e.fence == fence {
			return e.version
		}
	}
	return -1
}

// versionOf returns the newest of the first seen versions with this content, or -1.
func (t *oracle) versionOf(body string, seen int) int {
	for i := seen - 1; i >= 0; i-- {
		if v := &t.object.versions[i]; v.kind == event.Created && v.body == body {
			return i
		}
	}
	return -1
}

// removedAt returns the removal on which an attempt acted: the last of the first seen versions, or
// in event order the claimed removal.
func (t *oracle) removedAt(claim *ledger.Claim, seen int) int {
	last := -1
	for i := range t.object.versions {
		v := &t.object.versions[i]
		switch {
		case v.kind != event.Removed:
		case t.kind != trusting && i < seen:
			last = i
		case t.kind == trusting:
			last = i
			if v.sequencer.CompareSameKey(claim.Want.Sequencer) == 0 {
				return i
			}
		}
	}
	return last
}

func (t *oracle) outputWritten(claim *ledger.Claim, out *storedObject, seen, pinned int, guarded bool) {
	source := out.info.Metadata["pawl-source"]
	if t.publishedSources == nil {
		t.publishedSources = map[int64][]string{}
	}
	t.publishedSources[claim.Fence] = append(t.publishedSources[claim.Fence], source)
	version := t.versionOf(inputOf(out.body), seen)
	if t.Trace != nil {
		t.World.logf(nil, "the publish of fence %d lands: %s from version %d, over %s", claim.Fence, t.ref.Key, version, versionName(t.visible))
	}
	t.outputNotOlder(claim, version, pinned, guarded)
	t.visible = version
	t.changes++
}

func (t *oracle) outputDeleted(claim *ledger.Claim, version, pinned int, guarded bool) {
	if t.Trace != nil {
		t.World.logf(nil, "the removal of fence %d lands: %s for version %d, over %s", claim.Fence, t.ref.Key, version, versionName(t.visible))
	}
	t.outputNotOlder(claim, version, pinned, guarded)
	t.visible = version
	t.changes++
}

func (w *World) effectHappened(k *task, task *worker.Task, body string, seen int) {
	t := w.oracleOf(k.key)
	e := effect{
		fence: task.Fence, kind: task.Kind, body: body, version: t.removedAt(nil, seen), inputVersions: seen,
		heldLease: t.row.Lease.Fence == task.Fence && t.row.Held(),
	}
	if task.Kind == event.Created {
		e.version = t.versionOf(body, seen)
	}
	if t.Trace != nil {
		t.World.logf(nil, "the effect of fence %d happens: version %d of %s", e.fence, e.version, t.key)
	}
	t.effectsInOrder(&e)
	t.oneEffectPerRead(&e)
	t.effects = append(t.effects, e)
}
