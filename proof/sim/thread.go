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

	rows    rows
	ledger  *ledger.Ledger // the shipped one, over rows
	batch   int            // how many changes its swap has
	pending request        // on its way
	err     error          // what became of it
	heard   []any          // in its job so far, in a world that is explored
}

type threads = simkit.Threads[*thread]

func newThreads() *threads {
	return &threads{New: func() *thread {
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
	t.world, t.node, t.heard = w, n, t.heard[:0]
	w.pool.Start(t, func() { job(t) })
}

// sleep waits, and reports whether the process is still there.
func (t *thread) sleep(d time.Duration) bool {
	t.world.later(d, t)
	t.Yield()
	return !t.dead()
}

// dead reports that the process is gone: nothing it does has an effect any more.
func (t *thread) dead() bool { return t.world.over || t.node != nil && t.node.gone }

// run goes on, or waits for the process to be thawed.
func (t *thread) Run() {
	if t.node != nil && t.node.defers(t) {
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
func (t *thread) deliver(way time.Duration, do request) error {
	if way == 0 && !t.world.explored {
		return do()
	}
	t.pending, t.err = do, nil
	t.world.later(way, (*landing)(t))
	t.sleep(way)
	t.pending = nil
	return t.err
}

// landing is a thread whose request reaches its server.
type landing thread

func (l *landing) Run() { l.err = l.pending() }

// hears keeps what a thread learns. Its code is deterministic, so that is all
// that decides what it does next.
func (t *thread) hears(what any) {
	if t.world.explored {
		t.heard = append(t.heard, what)
	}
}
