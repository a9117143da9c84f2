package sim

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// oracle is what really became of one row, its object and its output, as nobody
// inside the world knows it.
type oracle struct {
	*World
	key    ledger.RowKey
	kind   kindOf
	object *object
	ref    event.Object // of the output

	row         ledger.Row // as it stands in the ledger
	exists      bool
	dueAt       time.Time
	unsettledAt time.Duration // when it last had something new to do

	highestFence int64    // the highest granted
	owner        *node    // to whom
	endings      []ending // of attempts, as their engines heard of them

	claims, completions, resets, released int
	repeatable                            bool // another effect at the same version is allowed
	lastEffect, claimedWant               ledger.Version
	lastEffectVersion                     int // the version of the last effect elsewhere

	declaredDeadBy *node // who wrote that the row is dead
	reported       bool
	highestSettled ledger.Version // that was settled
	highestDead    ledger.Version // the highest Want that a dead row had

	changes          int                // of the output
	visible          int                // which version of the object the output shows
	publishedWant    ledger.Version     // in event order, what was asked for by whoever changed it last
	publishedSources map[int64][]string // the sources of what each fence published
	effects          []effect

	committer *node // whose handler's transaction is being committed
}

// ending is how an attempt ended.
type ending struct {
	by       *node
	fin      engine.Finished
	recorded bool // into the ledger
	lost     bool // it had sent something, and its lease was gone
}

// effect is what an acting pipeline did.
type effect struct {
	fence         int64
	kind          event.Kind
	body          string
	version       int
	inputVersions int  // how many versions the object had had when it was looked at
	heldLease     bool // by who had the lease
}

func newOracle(w *World, kind kindOf, th *object) *oracle {
	t := &oracle{
		World: w, kind: kind, object: th, visible: -1,
		key: ledger.RowKey{Pipeline: kindNames[kind], Bucket: th.ref.Bucket, Key: th.ref.Key},
	}
	t.ref = event.Object{Bucket: outputs, Key: t.key.Pipeline + "/" + t.key.Bucket + "/" + t.key.Key}
	return t
}

// oracleOfOutput finds whose output an object is.
func (w *World) oracleOfOutput(ref event.Object) *oracle {
	for _, t := range w.oracles {
		if t.ref == ref {
			return t
		}
	}
	w.violatef(I1, "there is an output %s, of no object", ref.Key)
	return newOracle(w, publishing, &object{})
}

// rowWritten follows a write that has landed. by is nil for an operator.
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
		t.violatef(I8, "%s: Have became %s without a lease", t.key, after.Have.Order())
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

// leaseEnded follows a write that ended a lease.
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
		t.violatef(I8, "%s: Have became %s by one who did not have the lease", t.key, after.Have.Order())
	case by == nil || by.clock().Before(before.Lease.Until) && t.clocksWithinSkew():
		t.violatef(I8, "%s: the lease of fence %d was taken before its time", t.key, before.Lease.Fence)
	}
	t.repeatable = true // nobody knows what the former holder has done
}

// unrecordedEnding finds how an attempt ended that the ledger has not taken note of.
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
		t.lastEffect = ledger.Version{} // it was found to be what it had been before
	}
	// A verification looks at the output. Elsewhere there is nothing to look at.
	verifies := !t.kind.elsewhere() && !after.VerifyAt.IsZero()
	t.repeatable = fin.Ending.Unsure || verifies || after.Forced || t.verifyOutstanding()
}

// hadEffect reports that an attempt has had an effect: elsewhere, whatever it says
// itself. One that publishes may find, when it starts over, that another has
// published what it was about to.
func (t *oracle) hadEffect(fin *engine.Finished) bool {
	return fin.Acted || slices.ContainsFunc(t.effects, func(e effect) bool { return e.fence == fin.Fence })
}

// verifyScheduled follows a write that asks for a verification: by it a worker may
// have told that it had lost its lease after it had sent something.
func (t *oracle) verifyScheduled(by *node) {
	t.repeatable = true
	for i := range t.endings {
		if e := &t.endings[i]; e.by == by && e.lost {
			e.lost = false
		}
	}
}

// verifyOutstanding reports that some worker has yet to tell.
func (t *oracle) verifyOutstanding() bool {
	return slices.ContainsFunc(t.endings, func(e ending) bool { return e.lost && !e.by.gone })
}

// leaseGranted follows a new fence.
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

// attemptFinished hears how an attempt ended, before its engine does.
func (t *oracle) attemptFinished(by *node, fin *engine.Finished) {
	lost := fin.Ending.Sent && (!t.row.Held() || t.row.Lease.Fence != fin.Fence)
	t.endings = append(t.endings, ending{by: by, fin: *fin, lost: lost})
	t.repeatable = t.repeatable || lost
}

// processEnded hears that the process of an attempt is gone.
func (t *oracle) processEnded() { t.repeatable = true }

// attemptsReset hears that an operator, or an audit, has given the row attempts.
func (t *oracle) attemptsReset(force bool) {
	t.resets++
	t.repeatable = t.repeatable || force
}

// everPoisoned reports that some version of the object could not be taken.
func (t *object) everPoisoned() bool {
	return slices.ContainsFunc(t.versions, func(v version) bool { return v.poison != harmless })
}

// poisoned reports that the object is one that no handler can take.
func (t *oracle) poisoned() bool {
	v := t.object.current()
	return v != nil && v.poison != harmless
}

// effectVersion returns the version of the last effect that a fence had.
func (t *oracle) effectVersion(fence int64) int {
	for i := len(t.effects) - 1; i >= 0; i-- {
		if e := &t.effects[i]; e.fence == fence {
			return e.version
		}
	}
	return -1
}

// versionOf tells which version of the object a content is, read when there had
// been so many: the newest that it can be.
func (t *oracle) versionOf(body string, seen int) int {
	for i := seen - 1; i >= 0; i-- {
		if v := &t.object.versions[i]; v.kind == event.Created && v.body == body {
			return i
		}
	}
	return -1
}

// removedAt returns which removal an attempt has acted on that looked at so many
// versions of the object: the last one of them. In event order it is the one that
// the attempt was told of, if an event told of it.
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

// outputWritten follows a publish that has landed.
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

// outputDeleted follows a removal that has landed.
func (t *oracle) outputDeleted(claim *ledger.Claim, version, pinned int, guarded bool) {
	if t.Trace != nil {
		t.World.logf(nil, "the removal of fence %d lands: %s for version %d, over %s", claim.Fence, t.ref.Key, version, versionName(t.visible))
	}
	t.outputNotOlder(claim, version, pinned, guarded)
	t.visible = version
	t.changes++
}

// effectHappened follows an effect of an acting pipeline.
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
