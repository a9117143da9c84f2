package filesim

import (
	"errors"
	"iter"
	"time"

	"github.com/pawlhq/pawl/files"
)

var (
	errDead     = errors.New("the process is gone")
	errNoAnswer = errors.New("no answer")
)

// thread is a process that serves one request, as a coroutine: it goes on when the
// agenda says so, and nothing else runs meanwhile.
type thread struct {
	w     *World
	skew  time.Duration
	calm  bool // no fault happens to it
	dead  bool
	job   func(*thread)
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	files files.Service
}

// pool keeps threads from world to world, for making one costs more than a step.
type pool struct{ idle, all []*thread }

func (p *pool) get() *thread {
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

func (p *pool) close() {
	for _, t := range p.all {
		t.stop()
	}
}

// spawn starts a job on a node, which runs until it first waits.
func (w *World) spawn(node int, job func(*thread)) {
	t := w.pool.get()
	t.w, t.skew, t.calm, t.dead, t.job = w, w.skews[node], w.calm, false, job
	t.files = files.Service{
		Index: (*index)(t), Objects: (*objects)(t), Times: w.times, Limit: func(string) files.Usage { return w.limit },
		Now: t.now, NewID: w.newID, Wait: t.pause,
	}
	w.running++
	t.resume()
}

func (t *thread) resume() {
	t.next()
	if t.job == nil {
		t.w.running--
		t.w.pool.idle = append(t.w.pool.idle, t)
	}
}

func (t *thread) now() time.Time { return epoch.Add(t.w.now + t.skew) }

func (t *thread) sleep(d time.Duration) {
	if d > 0 && !t.dead {
		t.w.after(d, t.resume)
		t.yield(struct{}{})
	}
}

// request sends one request. do is its effect at the server.
func (t *thread) request(do func() error) error {
	if t.dead {
		return errDead
	}
	if t.calm {
		return do()
	}
	t.sleep(t.w.way())
	switch t.w.fault() {
	case crashBefore:
		t.dead = true
		return errDead
	case crashAfter:
		_ = do() // its answer is lost
		t.dead = true
		return errDead
	case lost:
		_ = do()
		return errNoAnswer
	case unsent:
		return errNoAnswer
	case late:
		t.w.after(t.w.tape.UpTo(5*time.Minute), func() { _ = do() })
		return errNoAnswer
	case freezeBefore:
		t.sleep(t.w.tape.UpTo(15 * time.Minute))
	case freezeAfter:
		err := do()
		t.sleep(t.w.tape.UpTo(3 * time.Hour))
		return err
	}
	err := do()
	t.sleep(t.w.way())
	return err
}
