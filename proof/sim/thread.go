package sim

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
)

// thread is a coroutine for code that waits for responses.
type thread struct {
	simkit.Thread
	world *World
	node  *node // nil for an operator

	rows       ledgerView
	ledger     *ledger.Ledger // the real ledger over rows
	batch      int            // size of its current swap
	pending    request        // not landed yet
	pendingErr error
	observed   []any // in explored worlds only
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

func (w *World) spawn(n *node, job func(*thread)) {
	t := w.pool.Get()
	t.world, t.node, t.observed = w, n, t.observed[:0]
	w.pool.Start(t, func() { job(t) })
}

func (t *thread) sleep(d time.Duration) bool {
	t.world.after(d, t)
	t.Yield()
	return !t.dead()
}

// The actions of a dead thread have no effect.
func (t *thread) dead() bool { return t.world.ended || t.node != nil && t.node.gone }

// Run continues the thread, or defers it while the process is frozen.
func (t *thread) Run() {
	if t.node != nil && t.node.deferIfFrozen(t) {
		return
	}
	t.world.pool.Resume(t)
}

func (t *thread) pause(context.Context, time.Duration) error {
	if !t.sleep(t.world.Tape.UpTo(time.Second)) {
		return errNoAnswer
	}
	return nil
}

// deliver executes a request even if the process has ended.
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

type requestArrival thread

func (l *requestArrival) Run() { l.pendingErr = l.pending() }

// observe records what determines a thread's next action.
func (t *thread) observe(what any) {
	if t.world.explored {
		t.observed = append(t.observed, what)
	}
}
