package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

func (n *node) waitSettled(ctx context.Context) time.Duration {
	from := n.world.since()
	n.WaitSettled(ctx)
	return n.world.since() - from
}

func noSweep(c *worker.Config) { c.SweepInterval, c.AckSettled = 0, true }

func never(context.Context, *worker.Task) error {
	return worker.RetryAfter(errors.New("busy"), time.Hour)
}

func TestWaitSettledCoversOnlyDeliveredObjects(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.start(matchAll(never), func(c *worker.Config) { c.SweepInterval = 24 * time.Hour })
		other.deliver(w.put("stranger", "x")).wantAck(w)
		n := w.start(matchAll(func(_ context.Context, task *worker.Task) error {
			if task.Attempt < 3 {
				return worker.RetryAfter(errors.New("busy"), time.Minute)
			}
			return nil
		}))
		n.deliver(w.put("a", "one"), w.put("b", "x")).wantAck(w)
		if got := n.Stats().Unsettled; got != 2 {
			t.Errorf("%d objects are not settled, want 2", got)
		}
		if took := n.waitSettled(w.t.Context()); took < 2*time.Minute || took > 2*time.Minute+5*time.Second {
			t.Errorf("returned after %s", took)
		}
		w.wantSettled("a")
		w.wantSettled("b")
		if got := n.Stats().Unsettled; got != 0 {
			t.Errorf("%d objects are not settled", got)
		}
		w.wantNotSettled("stranger")
	})
}

func TestWaitSettledReturnsAtOnceIfSettled(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(func(context.Context, *worker.Task) error { return worker.Permanent(errors.New("bad")) }))
		n.deliver(w.put("a", "one"))
		if took := n.waitSettled(w.t.Context()); took != 0 || !w.row("a").Dead {
			t.Errorf("returned after %s", took)
		}
	})
}

func TestWaitSettledIncludesObjectsOfOtherWorkers(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.start(matchAll((&busy{work: 5 * time.Minute}).handle))
		e := w.put("a", "one")
		other.deliver(e)
		n := w.start(matchAll((&busy{}).handle))
		n.deliver(e).wantAck(w)
		w.recorder.reset()
		if took := n.waitSettled(w.t.Context()); took < 5*time.Minute || took > 5*time.Minute+2*time.Second {
			t.Errorf("returned after %s", took)
		}
		if loads := w.recorder.count("load"); loads < 200 || loads > 600 {
			t.Errorf("%d loads in 5 minutes, with a sweep every second", loads)
		}
	})
}

func TestWaitSettledTakesOverExpiredLeases(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.start(matchAll((&busy{work: time.Hour}).handle))
		e := w.put("a", "one")
		other.deliver(e)
		other.ledger.disconnect()
		n := w.start(matchAll((&busy{}).handle))
		n.deliver(e).wantAck(w)
		if took := n.waitSettled(w.t.Context()); took < ttl || took > ttl+skew+2*time.Second {
			t.Errorf("returned after %s", took)
		}
		w.wantSettled("a")
	})
}

func TestWaitSettledIncludesOpenDeliveries(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		n.ledger.meet("claimed", answered(time.Minute))
		a := n.deliver(w.put("a", "one"))
		if took := n.waitSettled(w.t.Context()); took != time.Minute {
			t.Errorf("returned after %s", took)
		}
		a.wantAck(w)
		w.wantSettled("a")
	})
}

func TestWaitSettledEndsWithItsContextOrTheWorker(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(never))
		n.deliver(w.put("a", "one"))
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		if took := n.waitSettled(ctx); took != time.Minute {
			t.Errorf("returned after %s", took)
		}
		time.AfterFunc(time.Minute, n.cancel)
		if took := n.waitSettled(w.t.Context()); took != time.Minute || n.Stats().Unsettled != 1 {
			t.Errorf("returned after %s, %+v", took, n.Stats())
		}
		w.wantNotSettled("a")
	})
}

func (w *world) wantNotSettled(key string) {
	w.t.Helper()
	if r := w.row(key); r.Settled() || r.Held() {
		w.t.Errorf("%q is %s", key, r.State(time.Now()))
	}
}

func TestWaitSettledSurvivesLedgerErrors(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.start(matchAll((&busy{work: time.Second}).handle))
		e := w.put("a", "one")
		other.deliver(e)
		n := w.start(matchAll((&busy{}).handle))
		n.deliver(e).wantAck(w)
		n.ledger.fail(errors.New("the disk is on fire"))
		time.AfterFunc(10*time.Second, n.ledger.mend)
		if took := n.waitSettled(w.t.Context()); took < 10*time.Second || took > 13*time.Second {
			t.Errorf("returned after %s", took)
		}
		if len(w.log.having("WARN load of unsettled rows failed", "the disk is on fire")) == 0 {
			t.Errorf("logObserver %q", w.log.lines)
		}
	})
}

func TestWorkerWithoutSweeps(t *testing.T) {
	inWorld(t, func(w *world) {
		old := w.put("left", "x")
		crashed := w.start(matchAll(func(context.Context, *worker.Task) error { return errors.New("busy") }))
		crashed.deliver(old).wantAck(w)
		if err := crashed.stop(); err != nil {
			t.Fatal(err)
		}
		w.change("left", func(r *ledger.Row) { r.RetryAt = time.Time{} }) // due now

		n := w.start(matchAll(func(_ context.Context, task *worker.Task) error {
			switch {
			case task.Object.Key != "a":
				return nil
			case task.Attempt < 2:
				return worker.RetryAfter(errors.New("busy"), time.Minute)
			}
			return nil
		}), noSweep)
		e := w.put("a", "one")
		got := n.deliver(e).all()
		if len(got) != 1 || got[0].Ack || got[0].RetryAfter != time.Minute || got[0].Err == nil {
			t.Errorf("backing off: %+v", got)
		}
		w.pass(time.Hour)
		w.wantNotSettled("a")
		w.wantNotSettled("left")
		n.deliver(e).wantAck(w) // the redelivery starts the next attempt
		w.wantSettled("a")

		n.deliver(w.put("b", "x")).wantAck(w)
		if took := n.waitSettled(w.t.Context()); took != 0 {
			t.Errorf("returned after %s", took)
		}
		w.wantNotSettled("left")
		if swept := n.ledger.swept(); swept != 0 {
			t.Errorf("swept %d times", swept)
		}
	})
}

// A verification has no message.
func TestVerificationIsLeftToASweep(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper), noSweep)
		n.deliver(w.put("a", "one")).wantAck(w)
		w.change("a", func(r *ledger.Row) { r.VerifyAt = time.Now().Add(time.Minute) })
		w.erase(out("a")) // for example by a late write
		n.waitSettled(w.t.Context())
		w.pass(time.Hour)
		w.wantOutput("a", "")
		w.start(toOut(upper))
		w.pass(time.Minute)
		w.wantOutput("a", "ONE")
	})
}

func TestShutdownDuringWaitSettled(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(never), ackSettled)
		n.deliver(w.put("a", "one"), w.event(in("b"), event.Removed))
		allSettled := make(chan struct{})
		go func() {
			n.WaitSettled(context.WithoutCancel(w.t.Context()))
			close(allSettled)
		}()
		synctest.Wait()
		if err := n.stop(); err != nil {
			t.Error(err)
		}
		<-allSettled
		wantNoGoroutine(t)
	})
}
