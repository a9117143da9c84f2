package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/internal/linearizable"
	"github.com/pawlhq/pawl/internal/simkit"
)

// simulation is a simulated world: processes with their own clocks, one object store, and a faulty
// network. All random choices come from one tape. Only one coroutine runs at a time.
type simulation struct {
	*simkit.World
	threads *threads
	plan    plan
	calm    bool

	objects    map[string]*storedObject
	procs      []*proc
	beliefs    []*holding
	disturbed  map[string]int64 // by key: the highest token of a disturbed holder
	updated    int
	outcomes   map[string]bool
	unresolved map[string]updateTry
	history    *linearizable.History
}

// Probabilities are per mille of the requests.
type plan struct {
	ttl      time.Duration
	procs    int
	sharing  bool // by two coroutines of each process
	faults   int
	freezes  int
	crashes  int
	skewed   bool
	operator bool
	deletes  bool
	kind     kind
	register bool // on a register, not an object
}

type kind int

const (
	mutexes kind = iota
	updates      // updates without a lock
	semaphores
	shared
	kinds
)

func (k kind) String() string {
	return [...]string{"mutexes", "updates", "semaphores", "shared"}[k]
}

func drawPlan(t *simkit.Tape) plan {
	p := plan{
		ttl: simkit.Pick(t, 10*time.Second, 2*time.Second, 30*time.Second), procs: 2 + t.Choose(3), sharing: t.Chance(400),
		faults: simkit.Pick(t, 0, 100, 300, 500), freezes: simkit.Pick(t, 0, 20, 60), crashes: simkit.Pick(t, 0, 0, 15),
		skewed: t.Chance(700), operator: t.Chance(150), deletes: t.Chance(100), kind: kind(t.Choose(int(kinds))),
	}
	p.register = p.kind == mutexes && t.Chance(400)
	return p
}

// A world that exceeds maxSteps violates L5.
const maxSteps = 20_000

func (w *simulation) run() {
	for w.Step() {
		if w.Steps > maxSteps {
			w.Violatef("L5", "the world does not end")
			return
		}
	}
}

// proc is a process whose coroutines pause together.
type proc struct {
	*simulation
	id     int
	offset time.Duration
	rate   int64 // parts per thousand
	frozen time.Duration
	gone   bool
	nonces int
}

func (w *simulation) proc() *proc {
	p := &proc{simulation: w, id: len(w.procs), rate: 1000}
	if w.plan.skewed {
		p.offset = simkit.Pick(w.Tape, 0, -time.Hour, time.Hour, time.Second)
		p.rate = simkit.Pick(w.Tape, int64(1000), 976, 1024) // within 5 % of each other
	}
	w.procs = append(w.procs, p)
	return p
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (p *proc) Now() time.Time {
	return epoch.Add(p.offset + p.simulation.Now*time.Duration(p.rate)/1000)
}

type thread struct {
	simkit.Thread
	*proc
	fence int64
	force bool
}

type threads = simkit.Threads[*thread]

func newThreads() *threads { return &threads{New: func() *thread { return &thread{} }} }

func (p *proc) spawn(job func(*thread)) {
	t := p.threads.Get()
	t.proc, t.fence, t.force = p, 0, false
	p.threads.Start(t, func() { job(t) })
}

func (t *thread) resume() {
	switch {
	case t.gone:
	case t.frozen > t.simulation.Now:
		t.After(t.frozen-t.simulation.Now+t.Tape.UpTo(10*time.Millisecond), t.resume)
	default:
		t.threads.Resume(t)
	}
}

func (t *thread) wait(d time.Duration) {
	t.After(d, t.resume)
	t.suspend()
}

func (t *thread) suspend() {
	t.Yield()
	switch {
	case t.calm:
	case t.Tape.Chance(t.plan.freezes):
		t.freeze()
	case t.Tape.Chance(t.plan.crashes):
		t.Tracef("process %d is killed", t.id)
		t.gone = true
		t.suspend()
	}
}

func (t *thread) freeze() {
	d := simkit.Pick(t.Tape, t.plan.ttl/2, t.plan.ttl, 3*t.plan.ttl) + t.Tape.UpTo(t.plan.ttl/2)
	t.frozen = t.simulation.Now + d
	t.Tracef("process %d pauses for %v", t.id, d)
	t.wait(d)
}

func (p *proc) wait(d time.Duration) { p.threads.Current.wait(d) }

func (p *proc) Sleep(ctx context.Context, d time.Duration) error {
	if until, ok := ctx.Deadline(); ok {
		d = min(d, until.Sub(p.Now()))
	}
	p.wait(max(d, 0)*1000/time.Duration(p.rate) + time.Microsecond)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Await polls done.
func (p *proc) Await(ctx context.Context, done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return true
		default:
		}
		if ctx.Err() != nil {
			return false
		}
		p.wait(time.Millisecond + p.Tape.UpTo(p.plan.ttl/8))
	}
}

func (p *proc) Limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	until := p.Now().Add(d)
	if before, ok := ctx.Deadline(); ok && before.Before(until) {
		until = before
	}
	return &limited{ctx, p, until}, func() {}
}

// limited is a context that ends by the clock of its process.
type limited struct {
	context.Context
	proc  *proc
	until time.Time
}

func (c *limited) Deadline() (time.Time, bool) { return c.until, true }

func (c *limited) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.proc.Now().Before(c.until) {
		return context.DeadlineExceeded
	}
	return nil
}

type stoppable struct {
	context.Context
	stopped bool
}

func (c *stoppable) Err() error {
	if c.stopped {
		return context.Canceled
	}
	return c.Context.Err()
}

func (p *proc) env() *env {
	return &env{
		store: &network{p}, clock: p,
		nonce: func() string {
			p.nonces++
			return fmt.Sprintf("%07d-%08d", p.id, p.nonces)
		},
		jitter: func(d time.Duration) time.Duration { return p.Tape.UpTo(d + time.Millisecond) },
	}
}

func (p *proc) bucket() *Bucket { return &Bucket{p.env(), "b"} }

var _ bucket.Store = (*network)(nil)
