package lock

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/linearizable"
)

// What must hold in every world:
//
//	L1  whoever enters or renews, no other can still believe to hold the lock, and of a
//	    semaphore or a shared lock no more than may
//	L2  tokens only rise: of leases, and of updates under one
//	L3  nobody is told that somebody else holds the lock that is one's own
//	L4  when the troubles are over, the lock can be had
//	L5  everything ends
//	L6  an update that was told to be written is there once, one that was told
//	    not to be is not, and no update is there twice
//	L7  the updates have an order in which every one saw the ones before

// belief is a lease as its holder sees it.
type holding struct {
	proc  *proc
	lease *heldLease
	reads bool // it is a reader's
	over  bool // released, lost, or given up
}

// excludes reports that only one of two may hold the lock. A semaphore is a
// matter of numbers.
func (b *holding) excludes(other *holding) bool {
	return b.proc.plan.kind != semaphores && !(b.reads && other.reads)
}

// believes reports that the holder may still act, as far as it can know.
func (b *holding) mayAct() bool {
	return !b.over && !b.proc.gone && !b.disturbed() && b.proc.Now().Sub(b.lease.sent) < b.lease.ttl()
}

// key is that of the lease.
func (b *holding) key() string {
	if b.proc.plan.register {
		return lockKey
	}
	return b.lease.ref.Key
}

// excused reports that somebody ended the exclusion.
func (b *holding) disturbed() bool {
	return b.lease.at.rec.Token <= b.proc.simulation.disturbed[b.key()]
}

// entered checks a grant.
func (w *simulation) recordGrant(b *holding) {
	w.Tracef("process %d holds the lock under %d", b.proc.id, b.lease.at.rec.Token)
	w.beliefs = append(w.beliefs, b)
	w.checkExclusion(b)
}

// alone checks a grant, or a renewal.
func (w *simulation) checkExclusion(b *holding) {
	holders := 1
	for _, other := range w.beliefs {
		if other == b || !other.mayAct() || !b.mayAct() {
			continue
		}
		if holders++; b.excludes(other) {
			w.Violatef("L1", "process %d enters, or stays, under %d, and process %d holds it under %d", b.proc.id, b.lease.at.rec.Token, other.proc.id, other.lease.at.rec.Token)
		}
	}
	if w.plan.kind == semaphores && holders > limit {
		w.Violatef("L1", "%d hold a semaphore of %d", holders, limit)
	}
}

// disturb ends the exclusion for whoever holds a lease under a token up to this:
// it was released by force, or its object deleted.
func (w *simulation) disturb(key string, token int64) {
	w.disturbed[key] = max(w.disturbed[key], token)
}

// landed checks what was written: an update under a fencing token, or a lease.
func (w *simulation) checkWrite(key string, r *storedObject, by *thread) {
	switch {
	case key != dataKey:
		w.checkLease(key, r, by)
	case by.fence > 0 && by.fence < r.fence:
		w.Violatef("L2", "an update under %d lands on one under %d", by.fence, r.fence)
	default:
		r.fence = max(r.fence, by.fence)
	}
}

func (w *simulation) checkLease(key string, r *storedObject, by *thread) {
	rec, err := decode(r.body)
	if err != nil {
		w.Violatef("L2", "no lease: %v", err)
		return
	}
	renewal := rec.State == Held && r.last.State == Held && rec.Owner == r.last.Owner && rec.Token == r.token
	if rec.Token < r.token || rec.State == Held && rec.Token == r.token && !renewal {
		w.Violatef("L2", "token %d after %d", rec.Token, r.token)
	}
	if by.force && rec.Token > r.token {
		w.disturb(key, r.token)
	}
	r.token, r.last = rec.Token, rec
}

// sent is a try of an update.
type updateTry struct {
	client    int
	saw, made string
	from      time.Duration
}

// checkUpdates looks at what became of the updates in the end.
func (w *simulation) checkUpdates() {
	there := map[string]int{}
	for _, id := range strings.Fields(string(w.object(dataKey).body)) {
		there[id]++
	}
	for id, n := range there {
		if n > 1 {
			w.Violatef("L6", "update %s was applied %d times", id, n)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.outcomes)) {
		if written := w.outcomes[id]; written && there[id] == 0 {
			w.Violatef("L6", "update %s was lost", id)
		} else if !written && there[id] > 0 {
			w.Violatef("L6", "update %s was applied though it was told not to be", id)
		}
	}
	for _, s := range w.unresolved {
		w.history.Add(s.client, dataKey, s.from, s.from, linearizable.Unknown(s.saw, s.made))
	}
	if err := w.history.Check(); err != nil {
		w.Violatef("L7", "%v", err)
	}
}

// patience is how long it may take to get the lock when all is calm, on a clock
// that is right. Who is gone is watched for a TTL: a holder, and then a reader.
func (p *plan) acquireTimeout() time.Duration {
	return 2*p.ttl + 20*time.Second
}
