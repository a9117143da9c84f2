package worker

import (
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
)

// Config configures a worker. Fields are required unless they say otherwise.
type Config struct {
	Ledger           ledger.Store
	Objects          bucket.Store
	Pipelines        []*Pipeline
	Policy           ledger.Policy
	Concurrency      int
	MaxBacklogEvents int
	MaxBytes         int64
	SweepInterval    time.Duration  // 0: never
	Outage           time.Duration  // attempts do not count for this long while a receiver is down
	Outages          engine.Outages // state of an earlier worker; may be nil
	ShutdownTimeout  time.Duration
	LedgerTimeout    time.Duration // wait for the ledger after ShutdownTimeout
	FailAfter        time.Duration // see Attempt
	AckSettled       bool
	Logger           *slog.Logger
	Observer         Observer // may be nil
	Tracer           Tracer   // may be nil
}

// Worker runs pipelines over one ledger. It implements [source.Sink].
type Worker struct {
	cfg        Config
	ledger     *ledger.Ledger
	engine     *engine.Engine
	pipelines  map[string]*Pipeline
	observers  observers
	admission  *admission
	inputs     chan engine.Input
	lastID     atomic.Uint64
	open       sync.Map // delivery ID → *openDelivery
	wg         sync.WaitGroup
	allSettled chan struct{} // closed when all is settled
	done       chan struct{} // closed when the loop has ended

	tasks        map[ledger.RowKey]*running // owned by the loop
	sourcesEnded bool                       // owned by the loop
	traces       map[ledger.RowKey]*trace   // of attempts, until their results are stored; owned by the loop

	// base is the context of tasks, hard the context of ledger calls.
	base, hard         context.Context
	endTasks, endCalls context.CancelCauseFunc

	warnings *warnings
	due      func(pipeline string)

	mu     sync.Mutex
	stats  Stats
	health Health
}

// Stats counts a worker's activity since New.
type Stats struct {
	engine.Stats
	// Unsettled is the number of delivered objects that are neither settled nor dead now.
	// A worker without sweeps does not count objects that it returned.
	Unsettled    int
	Running      int   // attempts that run now
	RunningBytes int64 // total size of their objects
	Backlog      int   // events that count towards MaxBacklogEvents
}

// Health contains the times by which a probe judges a worker. Each is zero until its first event.
type Health struct {
	LastTurn   time.Time // last run of the loop; at least every five seconds
	LastAnswer time.Time // last answer of the ledger without an error
	Unanswered time.Time // first request to the ledger since its last answer; zero: no request waits
}

type openDelivery struct {
	source.Delivery
	pipelines []string
	unmatched int
	endSpan   func(error) // nil without a tracer
}

const (
	inputBuffer  = 1024
	cachedRows   = 10_000
	turnInterval = 5 * time.Second
)

// New returns a worker that does nothing before Run.
func New(cfg Config) *Worker {
	cfg.Objects = newDenials(cfg.Objects)
	w := &Worker{
		cfg: cfg, ledger: ledger.New(cfg.Ledger), admission: newAdmission(cfg.MaxBacklogEvents, share(cfg)),
		pipelines:  map[string]*Pipeline{},
		inputs:     make(chan engine.Input, inputBuffer),
		allSettled: make(chan struct{}),
		done:       make(chan struct{}),
		tasks:      map[ledger.RowKey]*running{},
		traces:     map[ledger.RowKey]*trace{},
	}
	w.ledger.Unclear = func(err error) {
		w.warnings.unclear.Log(context.Background(), "unclear answer from the ledger; checking the rows", "error", err)
	}
	names, own := make([]string, len(cfg.Pipelines)), map[string]int{}
	for i, p := range cfg.Pipelines {
		w.pipelines[p.Name], names[i], own[p.Name] = p, p.Name, p.Concurrency
	}
	w.warnings = newWarnings(cfg.Logger, names)
	traits := ledger.TraitsOf(cfg.Ledger)
	swaps, batch := swapsOf(traits)
	w.observers = observers{logObserver{cfg.Logger, w.warnings}}
	if cfg.Observer != nil {
		w.observers = append(w.observers, cfg.Observer)
	}
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	w.engine = engine.New(engine.Config{
		Owner: owner(), Pipelines: names, Policy: cfg.Policy,
		Tasks: cfg.Concurrency, Reserved: own, Waiting: waiting(cfg), Bytes: cfg.MaxBytes, Swaps: swaps, Batch: batch, Cache: cachedRows,
		SweepInterval: cfg.SweepInterval, Outage: cfg.Outage, Outages: cfg.Outages, AckSettled: cfg.AckSettled, Counts: cfg.Observer != nil, Traces: cfg.Tracer != nil, Rand: mathrand.New(mathrand.NewChaCha8(seed)),
	})
	return w
}

// swapsOf returns the number of concurrent swaps, and of changes in each. A partial store sends each
// change as its own request. In one swap, every change would wait until the last one is answered.
// Under load, leases would then expire before their renewals are answered.
func swapsOf(t ledger.Traits) (swaps, batch int) {
	if t.Partial {
		return t.Swaps * t.Batch, 1
	}
	return t.Swaps, t.Batch
}

// waiting bounds the objects of one pipeline that wait for a slot. 0: no limit.
func waiting(cfg Config) int {
	if len(cfg.Pipelines) < 2 {
		return 0
	}
	return max(1, cfg.MaxBacklogEvents/len(cfg.Pipelines))
}

// share limits the backlog events of one pipeline's waiting deliveries. Each such object counts
// twice: in its delivery, and as an active object.
func share(cfg Config) int {
	if !cfg.AckSettled || len(cfg.Pipelines) < 2 {
		return cfg.MaxBacklogEvents
	}
	return max(1, cfg.MaxBacklogEvents/(2*len(cfg.Pipelines)))
}

func owner() string { return process.Name() + "/" + process.Nonce()[:12] }

// Run works until ctx ends. Then running handlers may finish within the shutdown timeout, the other
// attempts are released, and every delivery is answered. Run waits for a handler that ignores its
// cancelled context. Call Run only once.
//
// If the ledger becomes unusable, Run cancels the handlers, acknowledges no open delivery, and
// returns an [ledger.ErrUnusable].
func (w *Worker) Run(ctx context.Context) error {
	w.base, w.endTasks = context.WithCancelCause(context.WithoutCancel(ctx))
	w.hard, w.endCalls = context.WithCancelCause(context.WithoutCancel(ctx))
	defer w.endTasks(nil)
	defer w.endCalls(nil)
	err := w.loop(ctx)
	close(w.done)
	w.wg.Wait()
	return err
}

// loop is the only goroutine that uses the engine.
func (w *Worker) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	turn := time.NewTicker(turnInterval)
	defer turn.Stop()
	stop := &shutdown{w: w, begin: ctx.Done(), callsOver: w.hard.Done()}
	inputs := make([]engine.Input, 0, inputBuffer)
	if ctx.Err() != nil {
		w.step([]engine.Input{stop.drain()}) // before the engine claims an object that has just arrived
	}
	for {
		inputs = inputs[:0]
		w.note(&w.health.LastTurn)
		select {
		case <-turn.C:
			continue
		case in := <-w.inputs:
			inputs = append(inputs, in)
		case <-timer.C:
			inputs = append(inputs, engine.Tick{})
		case <-stop.begin:
			inputs = append(inputs, stop.drain())
		case <-stop.graceOver:
			stop.cancelTasks()
		case <-stop.callTimeout:
			stop.cancelCalls()
		case <-stop.callsOver:
			inputs = append(inputs, stop.forceEnd()...)
		}
		w.step(w.more(inputs))
		if stop.begun && w.engine.Idle() && w.admission.empty() && len(w.tasks) == 0 {
			return context.Cause(w.hard) // nil, unless calls were cancelled
		}
		w.schedule(timer)
	}
}

func (w *Worker) more(inputs []engine.Input) []engine.Input {
	for len(inputs) < inputBuffer {
		select {
		case in := <-w.inputs:
			inputs = append(inputs, in)
		default:
			return inputs
		}
	}
	return inputs
}

func (w *Worker) step(inputs []engine.Input) {
	for _, in := range inputs {
		switch in := in.(type) {
		case engine.Finished:
			w.endTask(&in)
		case engine.SourcesEnded:
			w.sourcesEnded = true
		}
	}
	now := time.Now().UTC().Truncate(time.Millisecond) // rows with whole milliseconds are shorter
	for _, a := range w.engine.Step(now, inputs...) {
		w.execute(a)
	}
	backlog := w.admission.setPending(w.engine.Pending())
	w.mu.Lock()
	w.stats = Stats{Stats: w.engine.Stats, Unsettled: w.engine.Unsettled(), Backlog: backlog}
	w.stats.Running, w.stats.RunningBytes = w.engine.Running()
	w.mu.Unlock()
	if w.sourcesEnded && w.engine.AllSettled() {
		close(w.allSettled)
		w.sourcesEnded = false
	}
}

func (w *Worker) schedule(timer *time.Timer) {
	if next := w.engine.Next(); !next.IsZero() {
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

func (w *Worker) send(in engine.Input) {
	select {
	case w.inputs <- in:
	case <-w.done:
	}
}

// WaitSettled reports that no delivery follows, and waits until every delivered object is settled
// or dead, or ctx or Run ends. Call it only once. A worker without sweeps returns deliveries that
// it does not settle, and does not wait for their objects.
func (w *Worker) WaitSettled(ctx context.Context) {
	w.send(engine.SourcesEnded{})
	select {
	case <-w.allSettled:
	case <-ctx.Done():
	case <-w.done:
	}
}

// Outages returns the known state of receivers. Call it after Run has returned.
func (w *Worker) Outages() engine.Outages { return w.engine.Outages() }

// OnDue sets a function that is called, from any goroutine, after each query for due rows. Call it
// before Run.
func (w *Worker) OnDue(f func(pipeline string)) { w.due = f }

// SweepOnce processes all due rows, and reports whether it finished. Use it without deliveries, and
// only once.
func (w *Worker) SweepOnce(ctx context.Context) bool {
	w.send(engine.SweepOnce{})
	w.WaitSettled(ctx)
	select {
	case <-w.allSettled:
		return true
	default:
		return false
	}
}

// Health returns the times of the worker's last activity.
func (w *Worker) Health() Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health
}

// note sets one of the times of w.health to the current time.
func (w *Worker) note(at *time.Time) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	*at = now
}

// Stats returns the current counts.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}
