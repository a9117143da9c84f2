package engine

import (
	"math/rand/v2"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pawlhq/pawl/ledger"
)

// Config configures an engine.
type Config struct {
	Owner     string // this worker's name in leases; unique among all workers that ever ran
	Pipelines []string
	Policy    ledger.Policy
	Tasks     int            // concurrent attempts of all pipelines without reserved slots
	Reserved  map[string]int // by pipeline; 0: the pipeline uses the common slots
	// Waiting bounds the objects of one pipeline that wait for a slot in memory. Sweeps load the
	// others later. 0: no bound.
	Waiting       int
	Bytes         int64         // total size of the objects in running attempts
	Swaps         int           // concurrent swaps
	Batch         int           // changes in one swap
	Cache         int           // cached rows of objects without an entry
	SweepInterval time.Duration // average interval for each pipeline; 0: never
	Outage        time.Duration // attempts do not count for this long while a receiver is down
	Outages       Outages       // state of an earlier engine; may be nil
	// AckSettled acknowledges a delivery when its objects are settled or dead, not when its events
	// are in the ledger. Workers need it if no worker sweeps, or the ledger is volatile.
	AckSettled bool
	// Counts also emits the notices that only metrics need.
	Counts bool
	// Traces also emits AttemptReleased and AttemptAbandoned.
	Traces bool
	// Rand supplies nonces and jitter. Nonces must never repeat, so seed it securely.
	Rand *rand.Rand
}

// Engine makes a worker's decisions. It is not safe for concurrent use.
type Engine struct {
	cfg                Config
	now                time.Time
	out                []Action
	entries            map[ledger.RowKey]*entry
	cache              *simplelru.LRU[ledger.RowKey, ledger.Row]
	reportedUnreadable *simplelru.LRU[ledger.RowKey, ledger.Nonce]

	dirty   queue            // with intents, in order of arrival
	lanes   map[string]*lane // by pipeline
	order   []*lane
	turn    int // in order: the pipeline that may use the next free slot
	running []*entry

	deliveries map[uint64]*delivery
	batches    map[uint64][]*entry
	lastBatch  uint64
	slots      slots
	draining   bool
	sweepOnce  bool // sweep each pipeline until one query returns all of its due rows

	sweeps   []sweep
	tracker  tracker
	nextScan time.Time
	Stats    Stats
}

// Stats counts since the engine was created.
type Stats struct {
	Raised, Duplicate, Stale                       int64 // events
	Claimed, TakenOver                             int64 // attempts started
	Completed, NothingToDo, Failed, Released, Lost int64 // attempts ended
	Died                                           int64 // rows that became dead
	Swaps, Refused                                 int64 // compare-and-swaps
}

// New returns an engine.
func New(cfg Config) *Engine {
	cache, _ := simplelru.NewLRU[ledger.RowKey, ledger.Row](max(cfg.Cache, 1), nil) // fails only for a size below one
	reported, _ := simplelru.NewLRU[ledger.RowKey, ledger.Nonce](maxUnreadable, nil)
	e := &Engine{
		cfg: cfg, cache: cache, reportedUnreadable: reported,
		entries:    map[ledger.RowKey]*entry{},
		deliveries: map[uint64]*delivery{},
		batches:    map[uint64][]*entry{},
		dirty:      queue{which: dirty}, lanes: map[string]*lane{},
		slots: slots{common: cfg.Tasks, bytes: cfg.Bytes}, tracker: newTracker(),
	}
	for _, p := range cfg.Pipelines {
		e.sweeps = append(e.sweeps, sweep{pipeline: p, lane: e.addLane(p)})
	}
	return e
}

// Step returns the actions to perform, in order. They are valid until the next Step.
func (e *Engine) Step(now time.Time, inputs ...Input) []Action {
	e.now, e.out = now, e.out[:0]
	for _, in := range inputs {
		switch in := in.(type) {
		case Deliver:
			e.deliver(&in)
		case Swapped:
			e.swapped(&in)
		case Finished:
			e.finished(&in)
		case Swept:
			e.swept(&in)
		case Loaded:
			e.loaded(&in)
		case SourcesEnded:
			e.tracker.sourcesEnded = true
		case SweepOnce:
			e.sweepOnce = true
		case Drain:
			e.drain()
		case Tick:
		}
	}
	e.renewDue()
	e.flush()
	e.sweepAll()
	e.loadParked()
	return e.out
}

// Pending returns the number of active objects.
func (e *Engine) Pending() int { return len(e.entries) }

// Idle reports whether the engine has no active object and no unanswered delivery.
func (e *Engine) Idle() bool { return len(e.entries) == 0 && len(e.deliveries) == 0 }

// Next returns when Step must be called again, or zero if no call is needed.
func (e *Engine) Next() time.Time {
	next := e.nextScan
	for i := range e.sweeps {
		if s := &e.sweeps[i]; !s.asked && e.sweeping(s.lane) && (next.IsZero() || s.next.Before(next)) {
			next = s.next
		}
	}
	for _, l := range e.order {
		if at := l.outage.probeAt; at.After(e.now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if at := e.slots.quarantineEnd; e.slots.quarantine && at.After(e.now) && (next.IsZero() || at.Before(next)) {
		next = at
	}
	if at := e.tracker.next; e.loadsParked() && (next.IsZero() || at.Before(next)) {
		next = at
	}
	return next
}

func (e *Engine) emit(a Action) { e.out = append(e.out, a) }

func (e *Engine) nonce() (n ledger.Nonce) {
	for i := range 2 {
		v := e.cfg.Rand.Uint64()
		for j := range 8 {
			n[8*i+j] = byte(v >> (8 * j))
		}
	}
	return n
}

func (e *Engine) drain() {
	e.draining = true
	for _, l := range e.order {
		for en := l.ready.pop(); en != nil; en = l.ready.pop() {
			if e.waits(en) {
				e.drop(en)
			}
		}
	}
}
