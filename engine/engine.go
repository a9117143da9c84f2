package engine

import (
	"math/rand/v2"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pawlhq/pawl/ledger"
)

// Config bounds an engine.
type Config struct {
	Owner     string // names this worker in leases; unique among all that ever ran
	Pipelines []string
	Policy    ledger.Policy
	Tasks     int            // attempts running at a time, of the pipelines that share them
	Own       map[string]int // attempts of pipelines that have slots of their own
	// Waiting bounds the objects of one pipeline that wait for a slot in memory. The
	// ledger has the others, and a sweep brings them when it is their turn. 0: no bound.
	Waiting       int
	Bytes         int64         // summed size of the objects in them
	Swaps         int           // batches in flight
	Batch         int           // changes in a batch
	Cache         int           // rows remembered after their entry is gone
	SweepInterval time.Duration // how often each pipeline's due rows are asked for; 0: never
	Outage        time.Duration // how long attempts are not counted while a receiver is down
	Outages       Outages       // what an engine before this one knew
	// AckSettled acknowledges a delivery only when all its objects are
	// settled or dead, instead of when the ledger has them. It is for
	// workers after which no other sweeps, and for ledgers that forget.
	AckSettled bool
	// Counts reports every verdict, claim, answer and write as well, which
	// only metrics want.
	Counts bool
	// Rand supplies nonces and jitter. The nonces must be unpredictable
	// enough never to repeat.
	Rand *rand.Rand
}

// Engine decides. It is not safe for concurrent use.
type Engine struct {
	cfg     Config
	now     time.Time
	out     []Action
	entries map[ledger.RowKey]*entry
	cache   *simplelru.LRU[ledger.RowKey, ledger.Row]
	// reportedUnreadable are the rows that cannot be read, as they were when that was reported.
	reportedUnreadable *simplelru.LRU[ledger.RowKey, ledger.Nonce]

	dirty   queue            // entries with intents, in order of arrival
	lanes   map[string]*lane // by pipeline
	order   []*lane
	turn    int // whose turn it is in order
	running []*entry

	deliveries map[uint64]*delivery
	batches    map[uint64][]*entry
	lastBatch  uint64
	slots      slots
	draining   bool
	sweepOnce  bool // each pipeline is swept until an answer has all of its due rows

	sweeps   []sweep
	tracker  tracker
	nextScan time.Time
	Stats    Stats
}

// Stats counts what has happened since the engine was made.
type Stats struct {
	Raised, Duplicate, Stale                       int64 // events
	Claimed, TakenOver                             int64 // attempts
	Completed, NothingToDo, Failed, Released, Lost int64 // their ends
	Died                                           int64 // rows
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

// Step takes inputs and returns what to do about them, in order. The result is
// valid until the next Step.
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

// Pending returns how many objects something is happening to: what
// back-pressure goes by.
func (e *Engine) Pending() int { return len(e.entries) }

// Idle reports that nothing is happening at all.
func (e *Engine) Idle() bool { return len(e.entries) == 0 && len(e.deliveries) == 0 }

// Next returns when Step wants to be called again at the latest.
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
