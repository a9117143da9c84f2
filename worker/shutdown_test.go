package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/worker"
)

const (
	grace         = 20 * time.Second // as in start
	ledgerTimeout = 10 * time.Second // limit of a shutdown's wait for the ledger
)

func ackSettled(c *worker.Config) { c.AckSettled = true }

func TestHandlerMayFinishWithinTheGrace(t *testing.T) {
	inWorld(t, func(w *world) {
		b := &busy{work: grace - time.Second}
		n := w.start(matchAll(b.handle), ackSettled)
		answer := n.deliver(w.put("a", "one"))
		n.cancel()
		synctest.Wait()
		d := source.Delivery{Events: []event.Event{w.put("b", "two")}, Done: answer.take}
		for _, err := range []error{n.TryDeliver(d), n.Deliver(w.t.Context(), d)} {
			if !errors.Is(err, source.ErrClosed) {
				t.Errorf("the worker still accepts deliveries: %v", err)
			}
		}
		if err := n.stop(); err != nil || w.since() != b.work {
			t.Errorf("ended after %s with %v", w.since(), err)
		}
		answer.wantAck(w)
		w.wantSettled("a")
	})
}

func TestIdleWorkerStopsAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		n.deliver(w.put("a", "one"))
		if err := n.stop(); err != nil || w.since() != 0 {
			t.Errorf("ended after %s with %v", w.since(), err)
		}
	})
}

func TestLongGraceKeepsTheLease(t *testing.T) {
	inWorld(t, func(w *world) {
		b := &busy{work: 3 * ttl}
		n := w.start(matchAll(b.handle), func(c *worker.Config) { c.ShutdownTimeout = 4 * ttl })
		n.deliver(w.put("a", "one"))
		if err := n.stop(); err != nil || b.cause != nil {
			t.Errorf("ended with %v, the handler by %v", err, b.cause)
		}
		w.wantSettled("a")
	})
}

func TestHandlerBeyondTheGraceIsReleased(t *testing.T) {
	for name, p := range map[string]func(worker.HandlerFunc) *worker.Pipeline{"output": toOut, "no output": matchAll} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				b := &busy{work: time.Hour}
				n := w.start(p(b.handle), ackSettled)
				answer := n.deliver(w.put("a", "one"))
				if err := n.stop(); err != nil || w.since() != grace {
					t.Errorf("ended after %s with %v", w.since(), err)
				}
				if !errors.Is(b.cause, worker.ErrShutdown) {
					t.Errorf("cancelled by %v", b.cause)
				}
				if r := w.row("a"); r.Held() || r.Attempts != 0 || r.Settled() || r.Dead || r.LastError != "" || r.History[0].What != "released" {
					t.Errorf("held %v, attempts %d:\n%s", r.Held(), r.Attempts, history(&r))
				}
				if got := answer.all(); len(got) != 1 || got[0].Ack || got[0].Err == nil {
					t.Errorf("answered %+v, want one refusal", got)
				}
				next := w.start(toOut(upper))
				w.pass(2 * time.Second)
				w.wantSettled("a")
				if s := next.Stats(); s.Claimed != 1 || s.TakenOver != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestEveryDeliveryIsAnsweredOnceAtShutdown(t *testing.T) {
	for _, settled := range []bool{false, true} {
		for _, work := range []time.Duration{0, time.Second, time.Minute} {
			for _, after := range []time.Duration{0, 1500 * time.Millisecond, 5 * time.Second} {
				t.Run(fmt.Sprint("settled ", settled, ", work ", work, ", after ", after), func(t *testing.T) {
					inWorld(t, func(w *world) { answeredOnce(w, settled, work, after) })
				})
			}
		}
	}
}

func answeredOnce(w *world, settled bool, work, after time.Duration) {
	n := w.start(matchAll((&busy{work: work}).handle), func(c *worker.Config) { c.AckSettled = settled })
	type sent struct {
		events []event.Event
		answers
	}
	var all []*sent
	for i := range 60 {
		s := &sent{events: []event.Event{w.put(fmt.Sprint("k", i), "x"), w.put(fmt.Sprint("k", i/2), "y")}}
		err := n.TryDeliver(source.Delivery{Events: s.events, Done: s.take})
		if err == nil {
			all = append(all, s)
		} else if !errors.Is(err, source.ErrFull) {
			w.t.Fatal(err)
		}
	}
	if after > 0 {
		w.pass(after)
	}
	if err := n.stop(); err != nil {
		w.t.Errorf("ended with %v", err)
	}
	check := func(when string) {
		for i, s := range all {
			got := s.all()
			if len(got) != 1 || got[0].Ack != (got[0].Err == nil) {
				w.t.Errorf("%s: delivery %d has the answers %+v", when, i, got)
				continue
			}
			for _, e := range s.events {
				if got[0].Ack {
					w.wantKnown(&e, settled)
				}
			}
		}
	}
	check("at the end")
	w.pass(time.Hour)
	check("later")
}

// wantKnown fails the test unless the ledger has the event or a later one, and if settled, its
// effect.
func (w *world) wantKnown(e *event.Event, settled bool) {
	w.t.Helper()
	r := w.row(e.Object.Key)
	reached := r.Want
	if settled {
		reached = r.Have
	}
	if reached.Sequencer.CompareSameKey(e.Sequencer) < 0 {
		w.t.Errorf("%s of %s is acknowledged, and the row is %s:\n%s", e.Sequencer, e.Object, r.State(time.Now()), history(&r))
	}
}

func TestShutdownWithoutLedgerIsBounded(t *testing.T) {
	for name, cut := range map[string]func(l *faultyLedger){
		"no answer": (*faultyLedger).disconnect,
		"errors":    func(l *faultyLedger) { l.fail(errors.New("the disk is on fire")) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(toOut(upper), ackSettled)
				cut(n.ledger)
				var all []*answers
				for i := range 20 {
					all = append(all, n.deliver(w.put(fmt.Sprint("k", i), "x")))
				}
				err := n.stop()
				if err == nil || !strings.Contains(err.Error(), "the ledger did not answer in time during shutdown") {
					t.Errorf("ended with %v", err)
				}
				if w.since() > grace+ledgerTimeout {
					t.Errorf("it took %s", w.since())
				}
				for i, a := range all {
					if got := a.all(); len(got) != 1 || got[0].Ack || got[0].Err == nil {
						t.Errorf("delivery %d was answered %+v", i, got)
					}
				}
			})
		})
	}
}

func TestShutdownWithoutLedgerCancelsHandlers(t *testing.T) {
	inWorld(t, func(w *world) {
		b := &busy{work: time.Hour}
		n := w.start(matchAll(b.handle))
		n.deliver(w.put("a", "one")).wantAck(w)
		n.ledger.disconnect()
		if err := n.stop(); err == nil || w.since() > grace+ledgerTimeout {
			t.Errorf("ended after %s with %v", w.since(), err)
		}
		if !errors.Is(b.cause, worker.ErrShutdown) {
			t.Errorf("cancelled by %v", b.cause)
		}
		next := w.start(matchAll((&busy{}).handle))
		w.pass(time.Minute)
		w.wantSettled("a")
		if next.Stats().TakenOver != 1 {
			t.Errorf("%+v", next.Stats())
		}
	})
}

func TestWorkerStoppedBeforeItStarts(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(func(context.Context, *worker.Task) error { return nil }))
		if err := n.stop(); err != nil {
			t.Error(err)
		}
		if err := n.TryDeliver(source.Delivery{}); !errors.Is(err, source.ErrClosed) {
			t.Errorf("accepted a delivery after Run returned: %v", err)
		}
	})
}
