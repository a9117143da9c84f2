package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/worker"
)

// pauser blocks all calls of a paused worker, even if their contexts end, as in a stopped process.
type pauser struct {
	mu   sync.Mutex
	shut chan struct{}
}

func (d *pauser) pass() {
	d.mu.Lock()
	shut := d.shut
	d.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

// pause stops the whole worker, like SIGSTOP: its calls, the processing of answers, and its loop.
// Its timers continue, without effect until it resumes.
func (n *node) pause() {
	n.pauser.mu.Lock()
	n.pauser.shut = make(chan struct{})
	n.pauser.mu.Unlock()
	// The loop calls Done itself.
	if err := n.TryDeliver(source.Delivery{Done: func(source.Outcome) { n.pauser.pass() }}); err != nil {
		panic(err)
	}
}

func (n *node) resume() {
	n.pauser.mu.Lock()
	defer n.pauser.mu.Unlock()
	close(n.pauser.shut)
	n.pauser.shut = nil
}

type halting struct {
	bucket.Store
	pauser *pauser
}

func (s halting) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	s.pauser.pass()
	defer s.pauser.pass()
	return s.Store.Head(ctx, ref)
}

func (s halting) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	s.pauser.pass()
	defer s.pauser.pass()
	return s.Store.Get(ctx, ref)
}

func (s halting) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	s.pauser.pass()
	defer s.pauser.pass()
	return s.Store.Put(ctx, ref, o, c)
}

func (s halting) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	s.pauser.pass()
	defer s.pauser.pass()
	return s.Store.Delete(ctx, ref, c)
}

// stops pause a worker once, at different places.
var stops = map[string]func(n *node){
	"claiming":              func(n *node) { n.ledger.meet("claimed", func(do func()) { n.pause(); n.pauser.pass(); do() }) },
	"claimed":               func(n *node) { n.ledger.meet("claimed", func(do func()) { do(); n.pause() }) },
	"looking at the output": func(n *node) { n.store.Next(buckettest.Head, n.stopBefore) },
	"having pinned":         func(n *node) { n.store.Next(buckettest.Head, n.stopAfter) },
	"looking at the input":  func(n *node) { n.store.Next(buckettest.Head, buckettest.Pass, n.stopBefore) },
	"having looked":         func(n *node) { n.store.Next(buckettest.Head, buckettest.Pass, n.stopAfter) },
	"reading":               func(n *node) { n.store.Next(buckettest.Get, n.stopBefore) },
	"having read":           func(n *node) { n.store.Next(buckettest.Get, n.stopAfter) },
	"publishing":            func(n *node) { n.store.Next(buckettest.Put, n.stopBefore) },
	"having published":      func(n *node) { n.store.Next(buckettest.Put, n.stopAfter) },
	"completing":            func(n *node) { n.ledger.meet("completed", func(do func()) { n.pause(); n.pauser.pass(); do() }) },
	"completed":             func(n *node) { n.ledger.meet("completed", func(do func()) { do(); n.pause() }) },
}

func (n *node) stopBefore(ctx context.Context, do func(context.Context) error) error {
	n.pause()
	n.pauser.pass()
	return do(context.WithoutCancel(ctx))
}

func (n *node) stopAfter(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	n.pause()
	return err
}

func TestPausedWorker(t *testing.T) {
	for where, stop := range stops {
		for _, before := range []string{"", "zero"} {
			for _, change := range []string{"nothing", "replaced", "removed"} {
				t.Run(fmt.Sprintf("%s, output %q, input %s", where, before, change), func(t *testing.T) {
					inWorld(t, func(w *world) { stopped(w, stop, before, change) })
				})
			}
		}
	}
}

func stopped(w *world, stop func(*node), before, change string) {
	seldom := func(c *worker.Config) { c.SweepInterval = 10 * time.Second } // otherwise the test takes long
	sleeper := w.start(toOut(upper), seldom)
	if before != "" {
		sleeper.deliver(w.put("a", before)).wantAck(w)
		w.pass(time.Second)
	}
	stop(sleeper)
	first := sleeper.deliver(w.put("a", "one"))
	if sleeper.pauser.shut == nil {
		w.t.Fatal("it was not stopped")
	}
	other := w.start(toOut(upper), seldom)
	w.pass(time.Second)
	want := "ONE"
	switch change {
	case "replaced":
		want = "TWO"
		other.deliver(w.put("a", "two"))
	case "removed":
		want = ""
		other.deliver(w.remove("a"))
	default:
		other.deliver(w.event(in("a"), event.Created)) // a second copy
	}
	w.pass(2 * time.Minute)
	w.wantOutput("a", want)
	w.wantSettled("a")
	w.recorder.reset()
	sleeper.resume()
	synctest.Wait()
	if change != "removed" { // after a removal, a late write may create the output again until a verification
		w.wantOutput("a", want)
	}
	if n := w.recorder.count("swap renewed: ok"); n > 0 {
		w.t.Errorf("the worker renewed its lease %d times after the pause", n)
	}
	w.pass(2 * horizon)
	w.wantOutput("a", want)
	w.wantSettled("a")
	first.wantAck(w)
	if r := w.row("a"); r.Attempts != 0 || r.Doubt || !r.VerifyAt.IsZero() {
		w.t.Errorf("the row has %d attempts, doubt %v, verify at %s", r.Attempts, r.Doubt, r.VerifyAt)
	}
}

// After a jump ahead, other workers take over late; after a jump back, early.
func TestClockJumps(t *testing.T) {
	for _, c := range []struct {
		ahead   time.Duration
		overlap bool
	}{{-10 * time.Minute, true}, {-skew, false}, {skew, false}, {10 * time.Minute, false}} {
		t.Run(c.ahead.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				var ended, began time.Duration
				var cause error
				first := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					<-ctx.Done()
					ended, cause = w.since(), context.Cause(ctx)
					return write(task, "made by the first")
				}))
				first.deliver(w.put("a", "one"))
				first.ledger.turn(c.ahead)
				w.pass(ttl) // three renewals by the new clock
				first.ledger.disconnect()
				second := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					if began == 0 {
						began = w.since()
					}
					return upper(ctx, task)
				}))
				w.write(in("a"), "two", nil)
				second.deliver(w.event(in("a"), event.Created))
				w.pass(30 * time.Minute)
				first.ledger.mend()
				w.pass(time.Hour)
				if !errors.Is(cause, worker.ErrLeaseLost) || began == 0 || (began < ended) != c.overlap {
					t.Errorf("the first ended at %s by %v, the second began at %s", ended, cause, began)
				}
				w.wantOutput("a", "TWO")
				w.wantSettled("a")
			})
		})
	}
}
