package sim

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// truth is what really became of one row, its object and its output, as nobody
// inside the world knows it.
type truth struct {
	*World
	key   ledger.RowKey
	kind  kindOf
	thing *thing
	ref   event.Object // of the output

	row    ledger.Row // as it stands in the ledger
	exists bool
	due    time.Time
	news   time.Duration // when it last had something new to do

	fence int64    // the highest granted
	owner *node    // to whom
	ends  []ending // of attempts, as their engines heard of them

	claims, completions, fresh, given int
	repeatable                        bool // another effect at the same version is allowed
	acted, tried                      ledger.Version
	actedAt                           int // the version of the last effect elsewhere

	reaper   *node // who wrote that the row is dead
	reported bool
	highest  ledger.Version // that was settled
	died     ledger.Version // the highest Want that a dead row had

	changes int                // of the output
	visible int                // which version of the object the output shows
	shown   ledger.Version     // in event order, what was asked for by whoever changed it last
	stamps  map[int64][]string // the sources of what each fence published
	effects []effect

	committer *node // whose handler's transaction is being committed
}

// ending is how an attempt ended.
type ending struct {
	by    *node
	fin   engine.Finished
	taken bool // into the ledger
	lost  bool // it had sent something, and its lease was gone
}

// effect is what an acting pipeline did.
type effect struct {
	fence   int64
	kind    event.Kind
	body    string
	version int
	seen    int  // how many versions the object had had when it was looked at
	current bool // by who had the lease
}

func newTruth(w *World, kind kindOf, th *thing) *truth {
	t := &truth{
		World: w, kind: kind, thing: th, visible: -1,
		key: ledger.RowKey{Pipeline: kindNames[kind], Bucket: th.ref.Bucket, Key: th.ref.Key},
	}
	t.ref = event.Object{Bucket: outputs, Key: t.key.Pipeline + "/" + t.key.Bucket + "/" + t.key.Key}
	return t
}

// output finds whose output an object is.
func (w *World) output(ref event.Object) *truth {
	for _, t := range w.truths {
		if t.ref == ref {
			return t
		}
	}
	w.violate(I1, "there is an output %s, of no object", ref.Key)
	return newTruth(w, publishing, &thing{})
}

// wrote follows a write that has landed. by is nil for an operator.
func (t *truth) wrote(by *node, next *ledger.Row) {
	before := t.row
	if next == nil {
		t.row, t.exists, t.due = ledger.Row{RowKey: t.key}, false, time.Time{}
		t.acted, t.shown = ledger.Version{}, ledger.Version{}
		return
	}
	t.row, t.exists, t.due = *next, true, next.Due()
	after := &t.row
	if t.Trace != nil {
		t.World.tell(by, "writes %s: want %s have %s fence %d %q attempts %d doubt %v forced %v dead %v verify %v: %s", t.key, after.Want.Order(), after.Have.Order(),
			after.Lease.Fence, after.Lease.Owner, after.Attempts, after.Doubt, after.Forced, after.Dead, span(after.VerifyAt), after.History[0].What)
	}
	t.onlyRises(&before, after)
	if after.VerifyAt.After(before.VerifyAt) {
		t.suspected(by)
	}
	t.rests(&before, after)
	if before.Held() && (after.Lease.Fence != before.Lease.Fence || !after.Held()) {
		t.ended(by, &before, after)
	} else if moved(&before.Have, &after.Have) {
		t.violate(I8, "%s: Have became %s without a lease", t.key, after.Have.Order())
	}
	if after.Lease.Fence != before.Lease.Fence {
		t.granted(by, &before, after)
	}
	if after.Dead && !before.Dead {
		t.reaper, t.reported = by, false
		t.diedTried(after)
		t.undisturbed(after)
	}
	if after.Dead && after.Want.Compare(t.died) > 0 {
		t.died = after.Want
	}
	if after.Settled() && after.Have.Compare(t.highest) > 0 {
		t.highest = after.Have
	}
}

func span(at time.Time) any {
	if at.IsZero() {
		return "-"
	}
	return at.Sub(epoch)
}

func moved(before, after *ledger.Version) bool {
	return before.Compare(*after) != 0 || before.Kind != after.Kind || !before.Identity.Same(after.Identity)
}

// ended follows a write that ended a lease.
func (t *truth) ended(by *node, before, after *ledger.Row) {
	if t.committer != nil && before.Lease.Owner == t.committer.name {
		t.completions++
		t.committedOnce(before, after)
		return
	}
	e := t.ending(by, before.Lease.Fence)
	switch {
	case by != nil && e != nil && before.Lease.Owner == by.name:
		e.taken = true
		switch {
		case e.fin.Result == engine.Completed:
			t.completed(e, after)
		case e.fin.Result == engine.Released || e.fin.Failure.Uncounted:
			t.given++
		}
		t.repeatable = t.repeatable || e.fin.Ending.Sent && e.fin.Result != engine.Completed
		return
	case moved(&before.Have, &after.Have):
		t.violate(I8, "%s: Have became %s by one who did not have the lease", t.key, after.Have.Order())
	case by == nil || by.clock().Before(before.Lease.Until) && t.onTime():
		t.violate(I8, "%s: the lease of fence %d was taken before its time", t.key, before.Lease.Fence)
	}
	t.repeatable = true // nobody knows what the former holder has done
}

// ending finds how an attempt ended that the ledger has not taken note of.
func (t *truth) ending(by *node, fence int64) *ending {
	for i := range t.ends {
		if e := &t.ends[i]; e.by == by && e.fin.Fence == fence && !e.taken {
			return e
		}
	}
	return nil
}

func (t *truth) completed(e *ending, after *ledger.Row) {
	t.completions++
	fin := &e.fin
	if t.hasActed(fin) {
		t.actedOnce(fin, after)
		t.standsBehind(fin, after)
		t.acted = after.Have
	} else if t.acted.Kind != after.Have.Kind {
		t.acted = ledger.Version{} // it was found to be what it had been before
	}
	// A verification looks at the output. Elsewhere there is nothing to look at.
	verifies := !t.kind.elsewhere() && !after.VerifyAt.IsZero()
	t.repeatable = fin.Ending.Unsure || verifies || after.Forced || t.unsuspected()
}

// hasActed reports that an attempt has had an effect: elsewhere, whatever it says
// itself. One that publishes may find, when it starts over, that another has
// published what it was about to.
func (t *truth) hasActed(fin *engine.Finished) bool {
	return fin.Acted || slices.ContainsFunc(t.effects, func(e effect) bool { return e.fence == fin.Fence })
}

// suspected follows a write that asks for a verification: by it a worker may
// have told that it had lost its lease after it had sent something.
func (t *truth) suspected(by *node) {
	t.repeatable = true
	for i := range t.ends {
		if e := &t.ends[i]; e.by == by && e.lost {
			e.lost = false
		}
	}
}

// unsuspected reports that some worker has yet to tell.
func (t *truth) unsuspected() bool {
	return slices.ContainsFunc(t.ends, func(e ending) bool { return e.lost && !e.by.gone })
}

// granted follows a new fence.
func (t *truth) granted(by *node, before, after *ledger.Row) {
	t.claims++
	t.tried = after.Want
	if after.Lease.Fence <= t.fence {
		t.violate(I5, "%s: fence %d was granted after %d", t.key, after.Lease.Fence, t.fence)
	}
	t.fence = max(t.fence, after.Lease.Fence)
	t.owner = by
	t.oneAtATime(by, before)
}

// finished hears how an attempt ended, before its engine does.
func (t *truth) finished(by *node, fin *engine.Finished) {
	lost := fin.Ending.Sent && (!t.row.Held() || t.row.Lease.Fence != fin.Fence)
	t.ends = append(t.ends, ending{by: by, fin: *fin, lost: lost})
	t.repeatable = t.repeatable || lost
}

// interrupted hears that the process of an attempt is gone.
func (t *truth) interrupted() { t.repeatable = true }

// refreshed hears that an operator, or an audit, has given the row attempts.
func (t *truth) refreshed(force bool) {
	t.fresh++
	t.repeatable = t.repeatable || force
}

// everPoisoned reports that some version of the object could not be taken.
func (t *thing) everPoisoned() bool {
	return slices.ContainsFunc(t.versions, func(v version) bool { return v.poison != harmless })
}

// poisoned reports that the object is one that no handler can take.
func (t *truth) poisoned() bool {
	v := t.thing.now()
	return v != nil && v.poison != harmless
}

// effectOf returns the version of the last effect that a fence had.
func (t *truth) effectOf(fence int64) int {
	for i := len(t.effects) - 1; i >= 0; i-- {
		if e := &t.effects[i]; e.fence == fence {
			return e.version
		}
	}
	return -1
}

// versionOf tells which version of the object a content is, read when there had
// been so many: the newest that it can be.
func (t *truth) versionOf(body string, seen int) int {
	for i := seen - 1; i >= 0; i-- {
		if v := &t.thing.versions[i]; v.kind == event.Created && v.body == body {
			return i
		}
	}
	return -1
}

// removedAt returns which removal an attempt has acted on that looked at so many
// versions of the object: the last one of them. In event order it is the one that
// the attempt was told of, if an event told of it.
func (t *truth) removedAt(claim *ledger.Claim, seen int) int {
	last := -1
	for i := range t.thing.versions {
		v := &t.thing.versions[i]
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

// published follows a publish that has landed.
func (t *truth) published(claim *ledger.Claim, out *object, seen, pinned int, guarded bool) {
	source := out.info.Metadata["pawl-source"]
	if t.stamps == nil {
		t.stamps = map[int64][]string{}
	}
	t.stamps[claim.Fence] = append(t.stamps[claim.Fence], source)
	version := t.versionOf(inputOf(out.body), seen)
	if t.Trace != nil {
		t.World.tell(nil, "the publish of fence %d lands: %s from version %d, over %s", claim.Fence, t.ref.Key, version, numbered(t.visible))
	}
	t.neverBack(claim, version, pinned, guarded)
	t.visible = version
	t.changes++
}

// unpublished follows a removal that has landed.
func (t *truth) unpublished(claim *ledger.Claim, version, pinned int, guarded bool) {
	if t.Trace != nil {
		t.World.tell(nil, "the removal of fence %d lands: %s for version %d, over %s", claim.Fence, t.ref.Key, version, numbered(t.visible))
	}
	t.neverBack(claim, version, pinned, guarded)
	t.visible = version
	t.changes++
}

// affected follows an effect of an acting pipeline.
func (w *World) affected(k *task, task *worker.Task, body string, seen int) {
	t := w.truth(k.key)
	e := effect{
		fence: task.Fence, kind: task.Kind, body: body, version: t.removedAt(nil, seen), seen: seen,
		current: t.row.Lease.Fence == task.Fence && t.row.Held(),
	}
	if task.Kind == event.Created {
		e.version = t.versionOf(body, seen)
	}
	if t.Trace != nil {
		t.World.tell(nil, "the effect of fence %d happens: version %d of %s", e.fence, e.version, t.key)
	}
	t.inOrder(&e)
	t.oncePerLook(&e)
	t.effects = append(t.effects, e)
}
