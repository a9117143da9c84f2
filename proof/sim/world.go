package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// epoch is the start of simulated time.
var epoch = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

const workers = 3

// World is one simulated world.
type World struct {
	simkit.World
	pool         *threadPool
	plan         plan
	policy       ledger.Policy
	changes      []time.Duration // of objects
	faultsEnd    time.Duration
	shuttingDown bool // no replacement processes start
	ended        bool

	// explored is set if a test tries all orders of events. Each thread then records its
	// observations as its state.
	explored bool

	store       ledger.Store
	laggingRows refStore  // as of plan.lag ago
	index       []indexed // due rows, with plan.dynamo
	objectStore objectStore
	pipelines   []*worker.Pipeline // by kindOf; nil if absent
	names       []string
	objects     []*object
	oracles     []*oracle
	messages    []*message
	nodes       []*node
	started     int
	crashes     int
	freezes     int
	nonces      int
	setbacks    int // older results that replaced newer ones

	injected   [steps][faults]int
	violations []Violation
}

// maxSteps ends a world that does not settle.
const maxSteps = 20_000

func newWorld(pool *threadPool, tp *simkit.Tape, store ledger.Store) *World {
	w := &World{World: simkit.World{Tape: tp}, pool: pool, store: store, plan: drawPlan(tp)}
	w.policy = ledger.Policy{
		TTL: ttl, Skew: skew, Attempts: w.plan.attempts, Base: time.Second, Max: 10 * time.Second, LateWriteWindow: horizon, RowRetention: retain,
	}
	w.objectStore = objectStore{world: w, stored: map[event.Object]*storedObject{}}
	w.faultsEnd = w.plan.window + time.Minute
	w.build()
	w.schedule()
	return w
}

func (w *World) build() {
	w.pipelines = make([]*worker.Pipeline, len(kindNames))
	buckets, keys := [2]string{"in", "in"}, [2]string{"k", "k+1"}
	if w.plan.twoBucket {
		buckets[1], keys[1] = "in2", "k"
	}
	for i := range buckets {
		w.objects = append(w.objects, &object{ref: event.Object{Bucket: buckets[i], Key: keys[i]}, changedAt: -time.Minute})
	}
	for _, kind := range w.plan.pipelines {
		p := &worker.Pipeline{
			Name: kindNames[kind], Match: func(event.Object) bool { return true }, EventuallyConsistent: w.plan.eventual,
		}
		p.Transactional = kind == committing
		if !kind.elsewhere() {
			p.Output = func(k ledger.RowKey) event.Object {
				return event.Object{Bucket: outputs, Key: k.Pipeline + "/" + k.Bucket + "/" + k.Key}
			}
		}
		if kind == trusting {
			p.Order = worker.EventOrder
		}
		w.pipelines[kind] = p
		w.names = append(w.names, p.Name)
		for _, th := range w.objects {
			w.oracles = append(w.oracles, newOracle(w, kind, th))
		}
	}
}

var kindNames = [...]string{publishing: "publishing", acting: "acting", trusting: "trusting", committing: "committing"}

// elsewhere reports whether the effects are outside the object store.
func (k kindOf) elsewhere() bool { return k == acting || k == committing }

func (w *World) kindOf(k ledger.RowKey) kindOf {
	return kindOf(slices.Index(kindNames[:], k.Pipeline))
}

func (w *World) schedule() {
	for range workers {
		w.startWorker()
	}
	at := time.Duration(0)
	for range w.plan.changes {
		if w.Tape.Chance(600) {
			at += w.Tape.UpTo(3 * time.Second) // sometimes in the same second
		} else {
			at = w.Tape.UpTo(w.plan.window)
		}
		th := w.objects[0]
		if w.Tape.Chance(350) {
			th = w.objects[1]
		}
		w.changes = append(w.changes, at)
		w.At(at, simkit.Func(func() { w.change(th) }))
	}
	for range w.plan.drains {
		w.At(w.Tape.UpTo(w.plan.window), simkit.Func(w.drainRandomWorker))
	}
	w.scheduleOperators()
}

func (w *World) loop() {
	for w.Steps < maxSteps && w.Step() {
	}
}

func (w *World) run() {
	w.loop()
	w.repair()
	w.check()
	w.waitUntilSettled()
	w.shutDown()
	w.endThreads()
}

func (w *World) waitUntilSettled() {
	for _, n := range w.nodes {
		n.noMoreDeliveries = true
		n.enqueue(engine.SourcesEnded{})
	}
	w.loop()
	for _, n := range w.nodes {
		if !n.engine.AllSettled() {
			w.violatef(I4, "%s waits for %d objects", n.name, n.engine.Unsettled())
		}
	}
}

func (w *World) shutDown() {
	w.shuttingDown = true
	for _, n := range w.nodes {
		n.drain()
	}
	w.loop()
	for _, n := range w.nodes {
		w.violatef(I4, "%s does not shut down", n.name)
	}
}

func (w *World) endThreads() {
	w.ended = true
	for len(w.pool.Running) > 0 {
		w.pool.Resume(w.pool.Running[len(w.pool.Running)-1])
	}
}

func (w *World) time() time.Time { return epoch.Add(w.Now) }

func (w *World) after(d time.Duration, e simkit.Event) { w.At(w.Now+d, e) }

func (w *World) nonce() string {
	w.nonces++
	return "n" + strconv.Itoa(w.nonces)
}

// sweepEvery returns 0 for no sweeps.
func (w *World) sweepEvery() time.Duration {
	if w.plan.noSweep && w.Now < w.faultsEnd {
		return 0
	}
	return 10 * time.Second
}

func (w *World) drainRandomWorker() {
	if len(w.nodes) > 0 {
		w.nodes[w.Tape.Choose(len(w.nodes))].drain()
	}
}

func (w *World) earliestDue() (due time.Duration, any bool) {
	for _, t := range w.oracles {
		if !t.exists || t.dueAt.IsZero() {
			continue
		}
		if at := t.dueAt.Sub(epoch); !any || at < due {
			due, any = at, true
		}
	}
	return due, any
}

func (w *World) oracleOf(k ledger.RowKey) *oracle {
	for _, t := range w.oracles {
		if t.key == k {
			return t
		}
	}
	// The protocol wrote a row that should not exist.
	t := newOracle(w, w.kindOf(k), &object{ref: event.Object{Bucket: k.Bucket, Key: k.Key}})
	t.key = k
	w.oracles = append(w.oracles, t)
	w.violatef(I1, "the row %s belongs to no object", k)
	return t
}

func sortedIDs[V any](m map[uint64]V) []uint64 {
	if len(m) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}
