package sim

import (
	"iter"
	"time"
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
	t.world, t.node, t.job = w, n, job
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
