package lock

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/linearizable"
)

// Invariants of every simulated world:
//
//	L1  when a process acquires or renews a lock, no other holder's lease is valid; for a
//	    semaphore or a shared lock, at most as many as permitted
//	L2  the tokens of leases rise, and so do those of updates under a fence
//	L3  no process reports its own lock as held by another process
//	L4  when the faults have ended, the lock can be acquired
//	L5  every operation ends
//	L6  an update that was reported as written was applied once, an update that was
//	    reported as not written was not applied, and no update was applied twice
//	L7  the updates have an order in which each saw all earlier ones

// holding is a lease from its holder's view.
type holding struct {
	proc  *proc
	lease *heldLease
	reads bool // it is a reader's lease
	over  bool
}

// The limit of a semaphore is checked separately.
func (b *holding) excludes(other *holding) bool {
	return b.proc.plan.kind != semaphores && !(b.reads && other.reads)
}

func (b *holding) mayAct() bool {
	return !b.over && !b.proc.gone && !b.disturbed() && b.proc.Now().Sub(b.lease.sent) < b.lease.ttl()
}

func (b *holding) key() string {
	if b.proc.plan.register {
		return lockKey
	}
	return b.lease.ref.Key
}

func (b *holding) disturbed() bool {
	return b.lease.at.rec.Token <= b.proc.simulation.disturbed[b.key()]
}

func (w *simulation) recordGrant(b *holding) {
	w.Tracef("process %d holds the lock under %d", b.proc.id, b.lease.at.rec.Token)
	w.beliefs = append(w.beliefs, b)
	w.checkExclusion(b)
}

func (w *simulation) checkExclusion(b *holding) {
	holders := 1
	for _, other := range w.beliefs {
		if other == b || !other.mayAct() || !b.mayAct() {
			continue
		}
		if holders++; b.excludes(other) {
			w.Violatef("L1", "process %d acquires or renews under %d while process %d holds the lock under %d", b.proc.id, b.lease.at.rec.Token, other.proc.id, other.lease.at.rec.Token)
		}
	}
	if w.plan.kind == semaphores && holders > limit {
		w.Violatef("L1", "%d holders of a semaphore of %d", holders, limit)
	}
}

func (w *simulation) disturb(key string, token int64) {
	w.disturbed[key] = max(w.disturbed[key], token)
}

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

type updateTry struct {
	client    int
	saw, made string
	from      time.Duration
}

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
			w.Violatef("L6", "update %s was applied although it was reported as not written", id)
		}
	}
	for _, s := range w.unresolved {
		w.history.Add(s.client, dataKey, s.from, s.from, linearizable.Unknown(s.saw, s.made))
	}
	if err := w.history.Check(); err != nil {
		w.Violatef("L7", "%v", err)
	}
}

// A process may have to watch an abandoned writer and then an abandoned reader for a TTL each.
func (p *plan) acquireTimeout() time.Duration {
	return 2*p.ttl + 20*time.Second
}
