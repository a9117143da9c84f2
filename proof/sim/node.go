package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// node is a worker process: the real engine, and simulated goroutines and timers.
type node struct {
	*World
	name        string
	skew        time.Duration // from true time
	engine      *engine.Engine
	inbox       []engine.Input
	spare       []engine.Input
	stepPlanned bool
	tickAt      time.Duration
	tasks       []*task
	deliveries  map[uint64]*message

	gone             bool
	noMoreDeliveries bool
	draining         bool
	frozenUntil      time.Duration
	frozenTotal      time.Duration
	crashFreeUntil   time.Duration
}

type task struct {
	node     *node
	key      ledger.RowKey
	fence    int64
	deadline time.Duration // in true time
	ctx      context.Context
	cancel   context.CancelCauseFunc
	ended    bool
}

func (w *World) startWorker() {
	w.started++
	n := &node{World: w, name: "w" + strconv.Itoa(w.started), deliveries: map[uint64]*message{}}
	if w.plan.skewed {
		n.skew = simkit.Pick(w.Tape, 0, 20*time.Second, -20*time.Second, 2*time.Second, -2*time.Second)
	}
	swaps := 2
	if w.plan.dynamo && w.plan.batch == 1 {
		swaps = 16 // a worker on DynamoDB sends each change alone, and many at a time
	}
	n.engine = engine.New(engine.Config{
		Owner: n.name, Pipelines: w.names, Policy: w.policy, Tasks: w.plan.tasks, Bytes: 1 << 20, Swaps: swaps,
		Batch: w.plan.batch, Cache: w.plan.cache, SweepInterval: w.sweepEvery(), AckSettled: w.plan.ackSettled, Outage: time.Minute,
		Rand: w.newRand(),
	})
	w.nodes = append(w.nodes, n)
	n.enqueue(engine.Tick{})
}

type workerStart World

func (h *workerStart) Run() { (*World)(h).startWorker() }

// In an explored world, the nonces of processes differ, but the jitter is always one half.
func (w *World) newRand() *rand.Rand {
	if w.explored {
		return rand.New((*fixedJitter)(w))
	}
	return rand.New(rand.NewPCG(uint64(w.started), uint64(w.Tape.Choose(1<<30))))
}

// fixedJitter returns numbers that differ only in their last digits.
type fixedJitter World

func (h *fixedJitter) Uint64() uint64 {
	h.nonces++
	return 1<<52 + uint64(h.nonces)
}

func (n *node) clock() time.Time { return epoch.Add(n.Now + n.skew) }

func (n *node) enqueue(in engine.Input) {
	n.inbox = append(n.inbox, in)
	if !n.stepPlanned {
		n.stepPlanned = true
		n.At(n.Now, (*engineStep)(n))
	}
}

type engineStep node

func (s *engineStep) Run() {
	n := (*node)(s)
	if n.gone || n.deferIfFrozen(s) {
		return
	}
	n.stepPlanned = false
	in := n.inbox
	n.inbox = n.spare[:0]
	for _, a := range n.engine.Step(n.clock(), in...) {
		n.execute(a)
		if n.gone {
			return
		}
	}
	clear(in)
	n.spare = in
	if n.draining && n.engine.Idle() && len(n.tasks) == 0 {
		n.exit()
		return
	}
	n.planTick()
}

func (n *node) deferIfFrozen(d simkit.Event) bool {
	if n.gone || n.frozenUntil <= n.Now {
		return false
	}
	n.At(n.frozenUntil+n.Tape.UpTo(100*time.Millisecond), d) // events of the freeze run in any order
	return true
}

type engineTimer struct {
	*node
	at time.Duration
}

func (t *engineTimer) Run() {
	if t.gone || t.tickAt != t.at || t.deferIfFrozen(t) {
		return
	}
	t.tickAt = 0
	t.enqueue(engine.Tick{})
}

// An idle worker wakes up only when rows are due, because other sweeps change nothing.
func (n *node) planTick() {
	next := n.engine.Next()
	if next.IsZero() || n.gone {
		return
	}
	at := next.Sub(epoch) - n.skew
	if len(n.tasks) == 0 && !(n.noMoreDeliveries && n.engine.Unsettled() > 0) {
		due, any := n.earliestDue()
		if !any {
			return
		}
		at = max(at, due-n.skew)
	}
	at = max(at, n.Now+time.Millisecond)
	if n.tickAt == 0 || at < n.tickAt {
		n.tickAt = at
		n.World.At(at, &engineTimer{n, at})
	}
}

func (n *node) execute(act engine.Action) {
	switch a := act.(type) {
	case engine.Swap:
		n.spawn(n, func(t *thread) {
			t.observe(act)
			out, _ := t.ledger.Swap(context.Background(), a.Changes)
			if !t.dead() {
				n.enqueue(engine.Swapped{Batch: a.Batch, Outcomes: out})
			}
		})
	case engine.Start:
		n.start(&a)
	case engine.Extend:
		if k := n.task(a.Key, a.Fence); k != nil {
			k.deadline = a.Deadline.Sub(epoch) - n.skew
		}
	case engine.Cancel:
		if k := n.task(a.Key, a.Fence); k != nil {
			k.cancel(worker.ErrLeaseLost)
		}
	case engine.Answer:
		n.answer(&a)
	case engine.Sweep:
		n.spawn(n, func(t *thread) {
			t.observe(act)
			rows, _ := t.rows.Due(context.Background(), a.Pipeline, a.Before, a.Limit)
			if !t.dead() {
				n.enqueue(engine.Swept{Pipeline: a.Pipeline, Rows: rows})
			}
		})
	case engine.Load:
		n.spawn(n, func(t *thread) {
			t.observe(act)
			rows, err := t.rows.Load(context.Background(), a.Keys)
			if err != nil {
				a.Keys = nil
			}
			if !t.dead() {
				n.enqueue(engine.Loaded{Keys: a.Keys, Rows: rows})
			}
		})
	case engine.Notice:
		n.report(&a)
	}
}

func (n *node) task(key ledger.RowKey, fence int64) *task {
	for _, k := range n.tasks {
		if k.key == key && k.fence == fence && !k.ended {
			return k
		}
	}
	return nil
}

func (n *node) start(a *engine.Start) {
	k := &task{node: n, key: a.Claim.Key, fence: a.Claim.Fence, deadline: a.Deadline.Sub(epoch) - n.skew}
	k.ctx, k.cancel = context.WithCancelCause(context.Background())
	if k.deadline <= n.Now {
		k.cancel(worker.ErrLeaseLost)
	}
	n.tasks = append(n.tasks, k)
	n.startsWithGrantedFence(k)
	n.At(max(k.deadline, n.Now), k)
	if n.Trace != nil {
		n.World.logf(n, "starts %s with fence %d", a.Claim.Key, a.Claim.Fence)
	}
	claim := a.Claim
	n.spawn(n, func(t *thread) {
		t.observe(&claim)
		fin, ok := n.attempt(t, k, &claim)
		if ok && !t.dead() {
			k.finish(fin)
		}
	})
}

func (n *node) attempt(t *thread, k *task, claim *ledger.Claim) (fin engine.Finished, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			n.violatef(I10, "a panic of a handler ended the process of %s: %v", n.name, p)
			n.crash()
		}
	}()
	v := &storeView{objectStore: &n.objectStore, thread: t, claim: claim}
	t.observe(v)
	p := *n.pipelines[n.kindOf(claim.Key)]
	p.Handler = &handler{thread: t, task: k, view: v}
	x := &worker.Attempt{
		Ledger: t.ledger, Objects: v, Pipeline: &p, Claim: *claim, Nonce: n.nonce, Now: n.clock,
	}
	return x.Run(k.ctx), true
}

func (k *task) finish(fin engine.Finished) {
	n := k.node
	k.ended = true
	k.cancel(nil)
	for i, o := range n.tasks {
		if o == k {
			n.tasks = append(n.tasks[:i], n.tasks[i+1:]...)
			break
		}
	}
	if n.Trace != nil {
		n.World.logf(n, "ends fence %d of %s: %s", fin.Fence, fin.Key, describeOutcome(&fin))
	}
	n.oracleOf(k.key).attemptFinished(n, &fin)
	n.enqueue(fin)
}

// Run handles the task's deadline.
func (k *task) Run() {
	n := k.node
	switch {
	case k.ended || n.gone || n.deferIfFrozen(k):
	case n.Now < k.deadline:
		n.At(k.deadline, k)
	default:
		k.cancel(worker.ErrLeaseLost)
	}
}

func (n *node) answer(a *engine.Answer) {
	m := n.deliveries[a.ID]
	delete(n.deliveries, a.ID)
	if n.Trace != nil {
		action := "acknowledges"
		if !a.Ack {
			action = fmt.Sprintf("returns, for %v (%v),", a.After, a.Err)
		}
		n.World.logf(n, "%s message %d", action, m.id)
	}
	if !a.Ack {
		n.after(max(a.After, time.Second)+n.Tape.UpTo(time.Second), m)
		return
	}
	m.acked = true
	n.ackIsCovered(n, m)
}

func (n *node) report(a *engine.Notice) {
	if a.Kind == engine.Died {
		n.oracleOf(a.Key).reported = true
	}
	if n.Trace != nil {
		n.World.logf(n, "reports of %s: %s", a.Key, strings.TrimSpace(noticeTexts[a.Kind]+" "+a.Detail))
	}
}

func (n *node) crash() {
	if n.gone {
		return
	}
	if n.Trace != nil {
		n.World.logf(n, "crashes")
	}
	n.remove()
}

func (n *node) exit() {
	if n.Trace != nil {
		n.World.logf(n, "exits")
	}
	n.remove()
}

func (n *node) remove() {
	n.gone = true
	for _, id := range sortedIDs(n.deliveries) {
		n.after(n.Tape.UpTo(time.Minute), n.deliveries[id]) // redelivered after the visibility timeout
	}
	for i, o := range n.nodes {
		if o == n {
			n.nodes = append(n.nodes[:i], n.nodes[i+1:]...)
			break
		}
	}
	for _, k := range n.tasks {
		n.oracleOf(k.key).processEnded()
	}
	if !n.shuttingDown {
		n.after(n.Tape.UpTo(time.Minute), (*workerStart)(n.World))
	}
}

// A process that is frozen until after the end of its lease does not know that it lost the lease.
func (n *node) freeze() {
	d := simkit.Pick(n.Tape, 5*time.Second, 50*time.Second, 50*time.Second, 3*time.Minute, 2*time.Hour)
	d += n.Tape.UpTo(10 * time.Second)
	if n.Trace != nil {
		n.World.logf(n, "freezes for %v", d)
	}
	n.frozenUntil = n.Now + d
	if n.frozenTotal += d; n.frozenTotal > 90*time.Second {
		// The next write may land so late that only the process's own report schedules the next
		// check.
		n.crashFreeUntil = n.frozenUntil + time.Hour
	}
	if d > 30*time.Second {
		for _, id := range sortedIDs(n.deliveries) {
			n.after(30*time.Second+n.Tape.UpTo(10*time.Second), n.deliveries[id])
		}
	}
}

func (n *node) drain() {
	if n.gone || n.draining {
		return
	}
	n.draining = true
	n.enqueue(engine.Drain{})
	n.After(simkit.Pick(n.Tape, 20*time.Second, time.Second), func() {
		for _, k := range n.tasks {
			k.cancel(worker.ErrShutdown)
		}
	})
}
