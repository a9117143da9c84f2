package simkit

import (
	"iter"
	"slices"
)

// Thread is a coroutine that waits for events. No other code runs while it is resumed.
type Thread struct {
	job     func()
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	aborted bool
}

type aborted struct{}

func (t *Thread) thread() *Thread { return t }

// Yield suspends the thread until it is resumed.
func (t *Thread) Yield() {
	if !t.aborted {
		t.yield(struct{}{})
	}
	if t.aborted {
		panic(aborted{})
	}
}

func (t *Thread) run() {
	defer func() {
		if t.aborted {
			if e := recover(); e != nil && e != (aborted{}) {
				panic(e)
			}
		}
	}()
	t.job()
}

// Threads are the threads of a world. Idle ones are reused, because creating a thread takes longer than a
// step.
type Threads[T interface{ thread() *Thread }] struct {
	New     func() T
	Running []T
	Current T
	idle    []T
}

// Get returns a thread without a job.
func (p *Threads[T]) Get() T {
	if n := len(p.idle); n > 0 {
		t := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return t
	}
	owner := p.New()
	t := owner.thread()
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		for t.yield = yield; ; {
			t.run()
			t.job = nil
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return owner
}

// Start starts a job on a thread from [Threads.Get], and returns when the job first waits or ends.
func (p *Threads[T]) Start(t T, job func()) {
	t.thread().job = job
	p.Running = append(p.Running, t)
	p.Resume(t)
}

// Resume runs a thread until it waits again or its job ends.
func (p *Threads[T]) Resume(t T) {
	before := p.Current
	p.Current = t
	t.thread().next()
	p.Current = before
	if t.thread().job != nil {
		return
	}
	last := len(p.Running) - 1
	i := slices.IndexFunc(p.Running, func(one T) bool { return one.thread() == t.thread() })
	p.Running[i] = p.Running[last]
	p.Running = p.Running[:last]
	p.idle = append(p.idle, t)
}

// Abort ends all jobs, with their deferred functions.
func (p *Threads[T]) Abort() {
	for len(p.Running) > 0 {
		t := p.Running[len(p.Running)-1]
		t.thread().aborted = true
		p.Resume(t)
		t.thread().aborted = false
	}
}

// Close ends all threads.
func (p *Threads[T]) Close() {
	p.Abort()
	for _, t := range p.idle {
		t.thread().stop()
	}
}
