package world

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/pawlhq/pawl/files"
)

var (
	errDead     = errors.New("the process is gone")
	errNoAnswer = errors.New("no answer")
)

// thread is a coroutine that serves one request of a process. It runs only when the agenda
// resumes it, and then it runs alone.
type thread struct {
	*process
	ctx   context.Context // has the thread
	skew  time.Duration
	calm  bool            // no fault happens to it
	wake  <-chan struct{} // that it waits for; nil: for none
	left  bool            // its client has lost its patience
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
	t.ctx = context.WithValue(context.Background(), threadKey{}, t)
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
	t.process, t.skew, t.calm, t.job = w.processes[node], w.skews[node], w.calm, job
	t.files = files.Service{
		Index: t.index, Objects: (*objects)(t), Times: w.times, Limit: func(string) files.Usage { return w.limit },
		Now: t.now, NewID: w.newID,
	}
	w.running++
	t.resume()
}

type threadKey struct{}

func threadOf(ctx context.Context) *thread {
	t, _ := ctx.Value(threadKey{}).(*thread)
	return t
}

func (t *thread) dead() bool { return t.process.dead }

// crash ends the thread's process. Another one starts.
func (t *thread) crash() {
	t.process.dead = true
	for i, p := range t.w.processes {
		if p == t.process {
			t.w.processes[i] = newProcess(t.w)
		}
	}
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
	if d > 0 && !t.dead() {
		t.w.after(d, t.resume)
		t.yield(struct{}{})
	}
}

// received is the answer to a request, if the process has lived to see it.
func (t *thread) received(err error) error {
	if t.dead() {
		return errDead
	}
	return err
}

// request sends one request. do is its effect at the server.
func (t *thread) request(do func() error) error {
	if t.dead() {
		return errDead
	}
	if t.calm {
		return do()
	}
	t.sleep(t.w.way())
	if t.dead() {
		return errDead
	}
	switch t.w.fault() {
	case crashBefore:
		t.crash()
		return errDead
	case crashAfter:
		_ = do() // its answer is lost
		t.crash()
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
		if t.dead() {
			return errDead
		}
	case freezeAfter:
		err := do()
		t.sleep(t.w.tape.UpTo(3 * time.Hour))
		return t.received(err)
	}
	err := do()
	t.sleep(t.w.way())
	return t.received(err)
}
