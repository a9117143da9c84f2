package worker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

func TestUnusableLedgerStopsTheWorker(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprint("settled ", settled), func(t *testing.T) {
			inWorld(t, func(w *world) {
				gone := fmt.Errorf("%w: it was deleted", ledger.ErrUnusable)
				b := &busy{work: time.Hour}
				n := w.start(matchAll(b.handle), func(c *worker.Config) { c.AckSettled = settled })
				first := n.deliver(w.put("a", "one"))
				if !settled {
					first.wantAck(w)
				}
				n.ledger.fail(gone)
				var all []*answers
				if settled {
					all = append(all, first)
				}
				all = append(all, n.deliver(w.put("b", "two"), w.put("c", "three")))
				<-n.ended
				if !errors.Is(n.err, ledger.ErrUnusable) || w.since() != 0 {
					t.Errorf("ended after %s with %v", w.since(), n.err)
				}
				if b.cause == nil {
					t.Error("the handler was not cancelled")
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

func TestUnusableLedgerStopsAnIdleWorker(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		w.pass(time.Second)
		n.ledger.fail(ledger.ErrUnusable)
		<-n.ended
		if !errors.Is(n.err, ledger.ErrUnusable) || w.since() > 4*time.Second {
			t.Errorf("ended after %s with %v", w.since(), n.err)
		}
	})
}

func TestUnusableLedgerEndsAShutdown(t *testing.T) {
	inWorld(t, func(w *world) {
		b := &busy{work: time.Second}
		n := w.start(matchAll(b.handle), ackSettled)
		answer := n.deliver(w.put("a", "one"))
		n.ledger.fail(ledger.ErrUnusable)
		if err := n.stop(); !errors.Is(err, ledger.ErrUnusable) || w.since() > b.work {
			t.Errorf("ended after %s with %v", w.since(), err)
		}
		if got := answer.all(); len(got) != 1 || got[0].Ack {
			t.Errorf("answered %+v", got)
		}
	})
}
