package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

func TestUnmatchedRowsWait(t *testing.T) {
	for name, open := range map[string]func(w *world){
		"failed": func(w *world) {
			n := w.start(toOut(func(context.Context, *worker.Task) error { return errors.New("not today") }))
			n.deliver(w.put("a", "one")).wantAck(w)
			_ = n.stop()
		},
		"to be verified": func(w *world) {
			n := w.start(toOut(upper))
			n.deliver(w.put("a", "one")).wantAck(w)
			_ = n.stop()
			w.erase(out("a"))
			w.change("a", func(r *ledger.Row) { r.VerifyAt = time.Now() })
		},
		"left by a lost worker": func(w *world) {
			n := w.start(toOut(upper))
			n.deliver(w.put("a", "one")).wantAck(w)
			_ = n.stop()
			w.erase(out("a"))
			w.change("a", func(r *ledger.Row) {
				r.Want.Generation++
				r.Doubt, r.Lease.Owner, r.Lease.Until = true, "lost", time.Now()
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				open(w)
				edited := matchAll(upper)
				edited.Match = func(event.Object) bool { return false }
				edited.Output = func(k ledger.RowKey) event.Object { return event.Object{Bucket: "in", Key: "loop/" + k.Key} }
				n := w.start(edited, attempts(2))
				w.pass(10 * time.Hour)
				_ = n.stop()
				r := w.row("a")
				if r.Dead || r.Held() || !strings.Contains(r.LastError, "no longer matches") {
					t.Errorf("it is %s: %s\n%s", r.State(time.Now()), r.LastError, history(&r))
				}
				for _, ref := range []event.Object{out("a"), {Bucket: "in", Key: "loop/a"}} {
					if content, ok := w.content(ref); ok {
						t.Errorf("%s was written: %q", ref, content)
					}
				}
				if lines := w.log.having("no longer matches"); len(lines) == 0 || len(lines) > 11 {
					t.Errorf("%d lines in ten hours: %q", len(lines), lines)
				}
				w.start(toOut(upper), attempts(2))
				w.pass(time.Hour + time.Minute)
				w.wantSettled("a")
				w.wantOutput("a", "ONE")
			})
		})
	}
}

func TestUnmatchedRowsDoNotBlock(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(func(context.Context, *worker.Task) error { return worker.Outage(errors.New("down")) }))
		for i := range 3000 {
			n.deliver(w.put(fmt.Sprint("old/", i), "one")).wantAck(w)
		}
		n.deliver(w.put("new", "one")).wantAck(w)
		_ = n.stop()
		edited := toOut(upper)
		edited.Match = func(o event.Object) bool { return o.Key == "new" }
		w.start(edited)
		w.pass(5 * time.Minute)
		w.wantSettled("new")
	})
}
