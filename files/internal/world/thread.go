package world

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/simkit"
)

var (
	errDead     = errors.New("the process has crashed")
	errNoAnswer = errors.New("no answer")
)

type thread struct {
	simkit.Thread
	*process
	ctx        context.Context
	skew       time.Duration
	faultless  bool            // no faults happen to it
	wake       <-chan struct{} // nil if the thread does not wait
	clientGone bool
	files      files.Service
}

type threads = simkit.Threads[*thread]

func newThreads() *threads {
	return &threads{New: func() *thread {
		t := &thread{}
		t.ctx = context.WithValue(context.Background(), threadKey{}, t)
		return t
	}}
}

func (w *World) spawn(node int, job func(*thread)) {
	t := w.threads.Get()
	t.process, t.skew, t.faultless = w.processes[node], w.skews[node], w.faultless
	t.files = files.Service{
		Index: t.index, Objects: (*objects)(t), Times: w.times, Limit: func(string) files.Usage { return w.limit },
		Now: t.now, NewID: w.newID,
	}
	w.threads.Start(t, func() { job(t) })
}

type threadKey struct{}

func threadOf(ctx context.Context) *thread {
	t, _ := ctx.Value(threadKey{}).(*thread)
	return t
}

func (t *thread) dead() bool { return t.process.dead }

func (t *thread) crash() {
	t.process.dead = true
	for i, p := range t.w.processes {
		if p == t.process {
			t.w.processes[i] = newProcess(t.w)
		}
	}
}

func (t *thread) resume() { t.w.threads.Resume(t) }

func (t *thread) now() time.Time { return epoch.Add(t.w.Now + t.skew) }

func (t *thread) sleep(d time.Duration) {
	if d > 0 && !t.dead() {
		t.w.After(d, t.resume)
		t.Yield()
	}
}

func (t *thread) received(err error) error {
	if t.dead() {
		return errDead
	}
	return err
}

var requestFaults = []simkit.Fault{
	simkit.CrashBefore, simkit.CrashAfter, simkit.Lost, simkit.Unsent, simkit.Late, simkit.FreezeBefore, simkit.FreezeAfter,
}

// do is the effect of a request at the server.
func (t *thread) request(do func() error) error {
	if t.dead() {
		return errDead
	}
	if t.faultless {
		return do()
	}
	t.sleep(t.w.latency())
	if t.dead() {
		return errDead
	}
	switch t.w.Tape.Fault(t.w.faultRate, requestFaults...) {
	case simkit.CrashBefore:
		t.crash()
		return errDead
	case simkit.CrashAfter:
		_ = do() // its answer is lost
		t.crash()
		return errDead
	case simkit.Lost:
		_ = do()
		return errNoAnswer
	case simkit.Unsent:
		return errNoAnswer
	case simkit.Late:
		t.w.After(t.w.Tape.UpTo(5*time.Minute), func() { _ = do() })
		return errNoAnswer
	case simkit.FreezeBefore:
		t.sleep(t.w.Tape.UpTo(15 * time.Minute))
		if t.dead() {
			return errDead
		}
	case simkit.FreezeAfter:
		err := do()
		t.sleep(t.w.Tape.UpTo(3 * time.Hour))
		return t.received(err)
	}
	err := do()
	t.sleep(t.w.latency())
	return t.received(err)
}
