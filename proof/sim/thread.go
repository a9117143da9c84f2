package sim

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
)

// thread runs code that waits for answers.
type thread struct {
	simkit.Thread
	world *World
	node  *node // whose process it runs in; nil: an operator's

	rows       ledgerView
	ledger     *ledger.Ledger // the shipped one, over rows
	batch      int            // how many changes its swap has
	pending    request        // on its delay
	pendingErr error          // what became of it
	observed   []any          // in its job so far, in a world that is explored
}

type threadPool = simkit.Threads[*thread]

func newThreads() *threadPool {
	return &threadPool{New: func() *thread {
		t := &thread{}
		t.rows.thread = t
		t.ledger = ledger.New(&t.rows)
		t.ledger.Wait = t.pause
		return t
	}}
}

// spawn starts a job, which runs until it first waits.
func (w *World) spawn(n *node, job func(*thread)) {
	t := w.pool.Get()
	t.world, t.node, t.observed = w, n, t.observed[:0]
	w.pool.Start(t, func() { job(t) })
}

// sleep waits, and reports whether the process is still there.
func (t *thread) sleep(d time.Duration) bool {
	t.world.after(d, t)
	t.Yield()
	return !t.dead()
}

// dead reports that the process is gone: nothing it does has an effect any more.
func (t *thread) dead() bool { return t.world.ended || t.node != nil && t.node.gone }

// run goes on, or waits for the process to be thawed.
func (t *thread) Run() {
	if t.node != nil && t.node.deferIfFrozen(t) {
		return
	}
	t.world.pool.Resume(t)
}

// pause is how the ledger waits between two tries.
func (t *thread) pause(context.Context, time.Duration) error {
	if !t.sleep(t.world.Tape.UpTo(time.Second)) {
		return errNoAnswer
	}
	return nil
}

// deliver lets a request have its effect after a while, even if the process is
// gone by then.
func (t *thread) deliver(delay time.Duration, do request) error {
	if delay == 0 && !t.world.explored {
		return do()
	}
	t.pending, t.pendingErr = do, nil
	t.world.after(delay, (*requestArrival)(t))
	t.sleep(delay)
	t.pending = nil
	return t.pendingErr
}

// requestArrival is a thread whose request reaches its server.
type requestArrival thread

func (l *requestArrival) Run() { l.pendingErr = l.pending() }

// observe keeps what a thread learns. Its code is deterministic, so that is all
// that decides what it does next.
func (t *thread) observe(what any) {
	if t.world.explored {
		t.observed = append(t.observed, what)
	}
}
