package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/worker"
)

func narrow(backlog int) func(*worker.Config) {
	return func(c *worker.Config) { c.MaxBacklogEvents, c.Concurrency = backlog, 1 }
}

func TestFullWorkerRejectsDeliveries(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll((&busy{work: time.Minute}).handle), narrow(2))
		n.deliver(w.put("a", "x"))
		n.deliver(w.put("b", "x"))
		a := &answers{}
		third := source.Delivery{Events: []event.Event{w.put("c", "x")}, Done: a.take}
		if err := n.TryDeliver(third); !errors.Is(err, source.ErrFull) {
			t.Fatalf("answered %v", err)
		}

		ctx, cancel := context.WithCancelCause(w.t.Context())
		gaveUp := errors.New("gave up")
		time.AfterFunc(time.Second, func() { cancel(gaveUp) })
		if err := n.Deliver(ctx, third); !errors.Is(err, gaveUp) || w.since() != time.Second {
			t.Errorf("after %s answered %v", w.since(), err)
		}
		if got := a.all(); len(got) != 0 {
			t.Errorf("not taken, but answered %+v", got)
		}

		if err := n.Deliver(w.t.Context(), third); err != nil || w.since() != time.Minute {
			t.Errorf("after %s answered %v, want room when the first is done", w.since(), err)
		}
		synctest.Wait()
		a.wantAck(w)
	})
}

func TestWaitingDeliveryReturnsAtShutdown(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll((&busy{work: time.Second}).handle), narrow(1))
		n.deliver(w.put("a", "x"))
		refused := make(chan error, 1)
		go func() {
			refused <- n.Deliver(w.t.Context(), source.Delivery{Events: []event.Event{w.put("b", "x")}})
		}()
		synctest.Wait()
		n.cancel()
		synctest.Wait()
		select {
		case err := <-refused:
			if !errors.Is(err, source.ErrClosed) {
				t.Errorf("answered %v", err)
			}
		default:
			t.Error("it still waits")
		}
	})
}

func TestDeliveryLargerThanTheBacklogIsAdmitted(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper), narrow(1))
		var events []event.Event
		for i := range 50 {
			events = append(events, w.put(fmt.Sprint("k", i), "x"))
		}
		n.deliver(events...).wantAck(w)
		for i := range 50 {
			w.wantSettled(fmt.Sprint("k", i))
		}
	})
}

func TestConcurrencyLimit(t *testing.T) {
	inWorld(t, func(w *world) {
		var running, most int
		alone := make(chan struct{}, 1)
		n := w.start(matchAll(func(context.Context, *worker.Task) error {
			alone <- struct{}{}
			running++
			most = max(most, running)
			<-alone
			<-time.After(time.Second)
			alone <- struct{}{}
			running--
			<-alone
			return nil
		}), func(c *worker.Config) { c.Concurrency = 3 })
		for i := range 30 {
			n.deliver(w.put(fmt.Sprint("k", i), "x"))
		}
		w.pass(time.Minute)
		if most != 3 || n.Stats().Completed != 30 {
			t.Errorf("%d at a time, want 3; %+v", most, n.Stats())
		}
	})
}

func TestVerdicts(t *testing.T) {
	inWorld(t, func(w *world) {
		p := toOut(upper)
		p.Match = func(o event.Object) bool { return o.Key != "ignored" }
		n := w.start(p)
		older := w.put("a", "one")
		newer := w.put("a", "two")
		unmatched := w.put("ignored", "x")
		n.deliver(newer).wantAck(w)
		a := n.deliver(older, newer, unmatched, w.put("b", "x"))
		a.wantAck(w)
		want := source.Verdicts{Raised: 1, Duplicate: 1, Stale: 1, Unmatched: 1}
		if d := cmp.Diff(want, a.all()[0].Verdicts); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		n.deliver().wantAck(w)
		n.deliver(unmatched).wantAck(w)
	})
}

func TestUntrustedDuplicateIsChecked(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		e := w.put("a", "one")
		e.Dialect = event.MinIO
		n.deliver(e)
		n.deliver(e)
		if s := n.Stats(); s.Raised != 2 || s.Completed != 1 || s.NothingToDo != 1 {
			t.Errorf("%+v", s)
		}
		w.wantSettled("a")
	})
}

// The worker returns the delivery with the delay after which a redelivery is useful.
func TestAckSettledReturnsUnsettledDeliveries(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(func(context.Context, *worker.Task) error {
			return worker.RetryAfter(errors.New("busy"), time.Minute)
		}), ackSettled)
		got := n.deliver(w.put("a", "one")).all()
		if len(got) != 1 || got[0].Ack || got[0].RetryAfter != time.Minute || got[0].Err == nil {
			t.Errorf("backing off: %+v", got)
		}
	})
	inWorld(t, func(w *world) {
		first := w.start(matchAll((&busy{work: time.Second}).handle), ackSettled)
		second := w.start(matchAll((&busy{}).handle), ackSettled)
		waits := first.deliver(w.put("a", "one"))
		got := second.deliver(w.event(in("a"), event.Created)).all()
		if len(got) != 1 || got[0].Ack || got[0].RetryAfter != ttl+skew || got[0].Err == nil {
			t.Errorf("another worker has the row: %+v", got)
		}
		if len(waits.all()) != 0 {
			t.Errorf("not settled, but answered %+v", waits.all())
		}
		w.pass(5 * time.Second)
		waits.wantAck(w)
		w.wantSettled("a")
	})
}

func TestSlowPipelineDoesNotBlockOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		slow := matchAll((&busy{work: time.Hour}).handle)
		slow.Name, slow.Match = "slow", func(o event.Object) bool { return o.Key[0] == 's' }
		fast := toOut(upper)
		fast.Match = func(o event.Object) bool { return o.Key[0] == 'f' }
		n := w.start(slow, func(c *worker.Config) {
			c.AckSettled, c.MaxBacklogEvents, c.Concurrency, c.Pipelines = true, 40, 2, append(c.Pipelines, fast)
		})
		taken := 0
		for i := range 100 {
			err := n.TryDeliver(source.Delivery{Events: []event.Event{w.put(fmt.Sprint("s", i), "x")}, Done: func(source.Outcome) {}})
			synctest.Wait()
			if err == nil {
				taken++
			} else if !errors.Is(err, source.ErrFull) {
				t.Fatal(err)
			}
		}
		if taken != 10 {
			t.Errorf("%d deliveries of the slow pipeline were accepted, want its share of 10", taken)
		}
		for i := range 100 {
			n.deliver(w.put(fmt.Sprint("f", i), "x")).wantAck(w)
		}
	})
}
