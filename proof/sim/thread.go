package sim

import (
	"context"
	"iter"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// thread runs code that waits for answers, as a coroutine: it goes on when the
// agenda says so, and nothing else runs meanwhile.
type thread struct {
	world *World
	node  *node // whose process it runs in; nil: an operator's
	job   func(*thread)
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool

	rows    rows
	ledger  *ledger.Ledger // the shipped one, over rows
	batch   int            // how many changes its swap has
	pending request        // on its way
	err     error          // what became of it
	heard   []any          // in its job so far, in a world that is explored
}

// threads are kept from world to world, for making one costs more than a step.
type threads struct{ idle, all []*thread }

func (p *threads) get() *thread {
	if n := len(p.idle); n > 0 {
		t := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return t
	}
	t := &thread{}
	t.rows.thread = t
	t.ledger = ledger.New(&t.rows)
	t.ledger.Wait = t.pause
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		for {
			t.job(t)
			t.job = nil
			if !yield(struct{}{}) {
				return
			}
		}
	})
	p.all = append(p.all, t)
	return t
}

// close ends every thread. None may be in the middle of a job.
func (p *threads) close() {
	for _, t := range p.all {
		t.stop()
	}
}

// spawn starts a job, which runs until it first waits.
func (w *World) spawn(n *node, job func(*thread)) {
	t := w.pool.get()
	t.world, t.node, t.job, t.heard = w, n, job, t.heard[:0]
	w.running = append(w.running, t)
	t.resume()
}

// sleep waits, and reports whether the process is still there.
func (t *thread) sleep(d time.Duration) bool {
	t.world.after(d, t)
	t.yield(struct{}{})
	return !t.dead()
}

// dead reports that the process is gone: nothing it does has an effect any more.
func (t *thread) dead() bool { return t.world.over || t.node != nil && t.node.gone }

// run goes on, or waits for the process to be thawed.
func (t *thread) run() {
	if t.node != nil && t.node.defers(t) {
		return
	}
	t.resume()
}

func (t *thread) resume() {
	t.next()
	if t.job != nil {
		return
	}
	w := t.world
	for i, r := range w.running {
		if r == t {
			last := len(w.running) - 1
			w.running[i] = w.running[last]
			w.running = w.running[:last]
			break
		}
	}
	w.pool.idle = append(w.pool.idle, t)
}

// pause is how the ledger waits between two tries.
func (t *thread) pause(context.Context, time.Duration) error {
	if !t.sleep(t.world.tape.UpTo(time.Second)) {
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
	t.world.after(way, (*landing)(t))
	t.sleep(way)
	t.pending = nil
	return t.err
}

// landing is a thread whose request reaches its server.
type landing thread

func (l *landing) run() { l.err = l.pending() }

// hears keeps what a thread learns. Its code is deterministic, so that is all
// that decides what it does next.
func (t *thread) hears(what any) {
	if t.world.explored {
		t.heard = append(t.heard, what)
	}
}
