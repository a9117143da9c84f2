package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/ledger"
)

// The time of an output is omitted, because the nonce identifies the write.
func (c *stateKey) objects() {
	kept := c.m.objectStore.stored
	c.ints(len(kept))
	for _, t := range c.m.oracles {
		c.object(kept[t.ref])
		c.object(kept[t.object.ref])
	}
}

func (c *stateKey) object(o *storedObject) {
	c.bool(o != nil)
	if o == nil {
		return
	}
	c.string(o.body)
	if o.info.Metadata == nil { // an input
		c.ints(int(o.info.ModTime.Unix()))
		return
	}
	c.stamp(o.info.Metadata)
}

func (c *stateKey) stamp(meta map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		switch v := meta[k]; k {
		case "pawl-nonce":
			c.name(name{text: v})
		case "pawl-fence":
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				panic(err)
			}
			c.fence(n)
		default:
			c.string(v)
		}
	}
}

func (c *stateKey) process(n *node) {
	c.walk(reflect.ValueOf(n.engine))
	c.walk(reflect.ValueOf(n.inbox))
	c.bool(n.stepPlanned)
	c.bool(n.draining)
	c.distance(n.tickAt)
	c.bool(n.tickAt == 0)
	c.ints(len(n.tasks), len(n.deliveries))
	for _, k := range n.tasks {
		c.fence(k.fence)
		c.distance(k.deadline)
		c.string(fmt.Sprint(context.Cause(k.ctx)))
	}
	for _, id := range sortedIDs(n.deliveries) {
		c.number(delivery, id)
		c.ints(n.deliveries[id].id)
	}
	c.jobs(n)
}

func (c *stateKey) jobs(n *node) {
	all := c.threads(n)
	c.ints(len(all))
	for _, t := range all {
		c.thread(t)
	}
}

// threads returns the running threads of a process. If n is nil, it returns those of ended
// processes that have pending requests.
func (c *stateKey) threads(n *node) []*thread {
	var all []*thread
	for _, t := range c.m.pool.Running {
		if t.node == n || n == nil && t.node.gone {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *thread) int { return jobOf(a).compare(jobOf(b)) })
	return all
}

type job struct {
	what   string
	number int64
	hired  string
}

func jobOf(t *thread) job {
	switch a := t.observed[0].(type) {
	case engine.Swap:
		return job{"swap", int64(a.Batch), t.node.name}
	case engine.Sweep:
		return job{"sweep", 0, t.node.name}
	case *ledger.Claim:
		return job{"attempt", a.Fence, t.node.name}
	}
	panic(fmt.Sprintf("a thread begins with %T", t.observed[0]))
}

func (a job) compare(b job) int {
	return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.number, b.number), cmp.Compare(a.hired, b.hired))
}

func (c *stateKey) thread(t *thread) {
	c.bool(t.pending != nil)
	c.ints(len(t.observed))
	var step Step
	var seen *storeView
	for _, h := range t.observed {
		switch h := h.(type) {
		case woken:
			c.b = append(c.b, 'W')
			if step == StepPin {
				// Has the output changed since the pin?
				c.ints(c.m.oracleOf(seen.claim.Key).changes - seen.pinnedChanges)
			}
		case engine.Swap:
			c.number(batch, h.Batch)
			if t.node.gone { // otherwise its engine knows the batch
				c.walk(reflect.ValueOf(h.Changes))
			}
		case Step:
			step = h
			c.b = append(c.b, byte(h))
		case *storeView:
			seen = h
			c.bool(h.outputSent)
			of := c.m.oracleOf(h.claim.Key)
			c.ints(of.removedAt(h.claim, h.inputVersions))
			if of.kind == acting {
				c.ints(h.inputVersions)
			}
		case **storedObject:
			c.object(*h)
		case map[string]string:
			c.stamp(h)
		default:
			c.walk(reflect.ValueOf(h))
		}
	}
}

// entries omits engine timers and steps, deadlines of tasks, and threads.
func (c *stateKey) entries() {
	all := make([]string, 0, len(c.m.Queue.Entries))
	for _, a := range c.m.Queue.Entries {
		switch do := a.Event.(type) {
		case *engineStep, *engineTimer, *task, *thread, *requestArrival:
		case *message:
			all = append(all, "message "+strconv.Itoa(do.id))
		case *workerStart:
			all = append(all, "hiring")
		case *user:
			all = append(all, "user")
		default:
			panic(fmt.Sprintf("a %T is to happen", do))
		}
	}
	slices.Sort(all)
	c.string(strings.Join(all, ","))
}

// The row of an oracle is the one in the store.
func (c *stateKey) writeOracle(t *oracle, alive []int64) {
	c.bool(t.repeatable)
	c.bool(t.reported)
	c.bool(t.declaredDeadBy != nil && !t.declaredDeadBy.gone)
	left := t.plan.attempts*(len(t.object.versions)+t.completions+t.resets) + t.released - t.claims // see claimsBounded
	c.ints(left, t.visible, t.lastEffectVersion)
	c.fence(t.highestFence)
	for _, v := range []*ledger.Version{&t.lastEffect, &t.claimedWant, &t.highestSettled, &t.highestDead, &t.publishedWant} {
		c.walk(reflect.ValueOf(v).Elem())
	}
	c.endings(t)
	// A fence's effects matter until its attempt can no longer complete.
	alive = slices.DeleteFunc(slices.Clone(alive), func(f int64) bool { return f < t.row.Lease.Fence })
	slices.Sort(alive)
	for _, f := range slices.Compact(alive) {
		c.fence(f)
		c.string(strings.Join(t.publishedSources[f], ","))
		c.ints(t.effectVersion(f))
	}
	c.effects(t)
}

// Ends of attempts matter until the ledger records or rejects them, and until a worker reported its
// lost lease. Reports of an ended worker may still reach the ledger.
func (c *stateKey) endings(t *oracle) {
	for _, n := range c.nodes {
		c.endingsOf(t, func(by *node) bool { return by == n })
	}
	c.endingsOf(t, func(by *node) bool { return by.gone })
}

func (c *stateKey) endingsOf(t *oracle, of func(*node) bool) {
	lost := false
	for i := range t.endings {
		e := &t.endings[i]
		if !of(e.by) {
			continue
		}
		lost = lost || e.lost && !e.by.gone
		if !e.recorded && e.fin.Fence >= t.row.Lease.Fence {
			c.walk(reflect.ValueOf(&e.fin).Elem())
		}
	}
	c.b = append(c.b, 'E')
	c.bool(lost)
}

// These are the effects that later effects are compared with.
func (c *stateKey) effects(t *oracle) {
	newest := -1
	for i := range t.effects {
		if e := &t.effects[i]; e.heldLease {
			newest = max(newest, e.version)
		}
	}
	last, any := t.lastAccepted()
	c.ints(newest)
	if any {
		c.fence(last.fence)
		c.ints(int(last.kind))
		c.string(last.body)
	}
}

func (c *stateKey) number(m encoding, id uint64) { c.name(name{node: c.node, encoding: m, number: id}) }
