package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/worker"
)

func byEvent(p *worker.Pipeline) *worker.Pipeline {
	p.Order = worker.EventOrder
	return p
}

func TestEventOrderChecksTheLeaseWithoutReadingTheObject(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(byEvent(toOut(w.recorder.handler(upper))))
		n.deliver(w.put("a", "one"))
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: object not found
			load
			handle created a
			get in/a: ok
			put out/up/a if absent: ok
			swap completed: ok`)
		w.wantOutput("a", "ONE")
		w.recorder.reset()

		// Only the event counts, although the object still exists.
		n.deliver(w.event(in("a"), event.Removed))
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: ok
			load
			delete out/up/a if unchanged: ok
			swap completed: ok`)
		w.wantOutput("a", "")
	})
}

func TestEventOrderLoadsTheRowAfterEveryPin(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(byEvent(toOut(upper)))
		n.store.Next(buckettest.Put, buckettest.Between(func() { w.write(out("a"), "another's", nil) }))
		n.deliver(w.put("a", "one"))
		w.wantOutput("a", "ONE")
		if got := w.recorder.count("load"); got != 2 {
			t.Errorf("the row was loaded %d times for two pins", got)
		}
	})
}

func TestEventOrderStopsWithoutItsFence(t *testing.T) {
	theft := map[string]func(r *ledger.Row){
		"taken over": func(r *ledger.Row) {
			r.Lease = ledger.Lease{Owner: "another", Fence: r.Lease.Fence + 1, Until: time.Now().Add(time.Hour)}
		},
		"taken over and ended": func(r *ledger.Row) { r.Lease = ledger.Lease{Fence: r.Lease.Fence + 1} },
		"ended":                func(r *ledger.Row) { r.Lease = ledger.Lease{Fence: r.Lease.Fence} },
	}
	for name, steal := range theft {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var stolen int64
				n := w.start(byEvent(toOut(func(ctx context.Context, task *worker.Task) error {
					if task.Fence == stolen {
						t.Error("the attempt acted without its lease")
					}
					return upper(ctx, task)
				})))
				n.store.Next(buckettest.Head, buckettest.Between(func() {
					stolen = w.row("a").Lease.Fence
					w.change("a", steal)
				}))
				n.deliver(w.put("a", "one")).wantAck(w)
				if s := n.Stats(); s.Lost+s.Failed != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestEventOrderRetriesUnavailableLedger(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(byEvent(toOut(upper)))
		n.store.Next(buckettest.Head, buckettest.Between(func() { n.ledger.fail(errors.New("the disk is on fire")) }))
		n.deliver(w.put("a", "one"))
		w.wantOutput("a", "")
		n.ledger.mend()
		w.pass(10 * time.Second)
		w.wantOutput("a", "ONE")
		w.wantSettled("a")
		if r := w.row("a"); r.History[1].What != "claimed" || r.History[2].Note != "check the lease: the disk is on fire" {
			t.Errorf("history:\n%s", history(&r))
		}
		if len(w.log.having("WARN", "attempt failed; it will be retried", "the disk is on fire")) != 1 {
			t.Errorf("logObserver:\n%q", w.log.lines)
		}
	})
}

func TestEventOrderRejectsUntrustedEvents(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect event.Dialect
		vouched bool
		without bool // without a sequencer
		want    error
	}{
		{"trusted", event.AWS, false, false, nil},
		{"untrusted", event.MinIO, false, false, source.ErrUntrusted},
		{"vouched for", event.MinIO, true, false, nil},
		{"no sequencer", event.R2, true, true, source.ErrUntrusted},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(byEvent(toOut(upper)))
				e := w.put("a", "one")
				e.Dialect = c.dialect
				if c.without {
					e.Sequencer = event.Sequencer{}
				}
				a := &answers{}
				d := source.Delivery{Events: []event.Event{e}, TrustSequencer: c.vouched, Done: a.take}
				for _, err := range []error{n.TryDeliver(d), n.Deliver(w.t.Context(), d)} {
					if !errors.Is(err, c.want) {
						t.Errorf("answered %v, want %v", err, c.want)
					}
				}
				if err := n.stop(); err != nil {
					t.Fatal(err)
				}
				if got := len(a.all()); (got == 2) != (c.want == nil) || got == 1 {
					t.Errorf("%d answers after %v", got, c.want)
				}
			})
		})
	}
}

func TestEventOrderNeedsNoObjectStore(t *testing.T) {
	inWorld(t, func(w *world) {
		open := false
		n := w.start(byEvent(matchAll(func(ctx context.Context, task *worker.Task) error {
			if !open {
				return nil
			}
			_, err := task.Open(ctx)
			return err
		})), func(c *worker.Config) { c.Objects = nil })
		n.deliver(w.put("a", "one"))
		w.wantSettled("a")

		open = true
		n.deliver(w.put("a", "two"))
		const want = "read s3://in/a: no object store is configured"
		if r := w.row("a"); !r.Dead || r.LastError != want {
			t.Errorf("dead %v: %q, want %q", r.Dead, r.LastError, want)
		}
	})
}

func TestEventOrderReportsTheEventsData(t *testing.T) {
	inWorld(t, func(w *world) {
		var got worker.Task
		n := w.start(byEvent(matchAll(func(_ context.Context, task *worker.Task) error {
			got = *task
			return nil
		})))
		e := w.put("a", "one")
		e.ETag, e.Size, e.Object.VersionID = "tag", 3, "v7"
		n.deliver(e)
		if got.Info.ETag != "tag" || got.Info.Size != 3 || got.Object != (event.Object{Bucket: "in", Key: "a", VersionID: "v7"}) {
			t.Errorf("the task is of %+v with %+v", got.Object, got.Info)
		}
	})
}

func TestEventOrderTrustsRemovalsOnEventuallyConsistentStores(t *testing.T) {
	inWorld(t, func(w *world) {
		p := byEvent(toOut(upper))
		p.EventuallyConsistent = true
		n := w.start(p)
		n.deliver(w.put("a", "one"))
		n.deliver(w.remove("a"))
		w.wantOutput("a", "")
		w.wantSettled("a")
	})
}
