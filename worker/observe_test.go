package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/worker"
)

type reports struct {
	mu  sync.Mutex
	got []engine.Notice
}

func (r *reports) Observe(report engine.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, report)
}

func (r *reports) take() []engine.Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

func TestObserverReceivesNotices(t *testing.T) {
	inWorld(t, func(w *world) {
		var r reports
		p := matchAll((&busy{work: time.Second}).handle)
		p.Match = func(o event.Object) bool { return o.Key != "unmatched" }
		n := w.start(p, func(c *worker.Config) { c.Observer = &r })
		e := w.put("a", "one")
		n.deliver(e, w.put("unmatched", "x"), w.put("unmatched", "y"))
		n.deliver(e)
		w.pass(2 * time.Second)
		key := rowKey("a")
		want := []engine.Notice{
			{Kind: engine.RowsWritten, N: 1},
			{Kind: engine.Raised, Key: key},
			{Kind: engine.Unmatched, N: 2},
			{Kind: engine.Acknowledged},
			{Kind: engine.Claimed, Key: key},
			{Kind: engine.Duplicate, Key: key},
			{Kind: engine.Acknowledged},
			{Kind: engine.RowsWritten, N: 1},
			{Kind: engine.Committed, Key: key, Took: time.Second, Behind: time.Second},
		}
		if d := cmp.Diff(want, r.take()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestLogAndObserverReceiveNotices(t *testing.T) {
	inWorld(t, func(w *world) {
		var r reports
		n := w.start(matchAll(func(context.Context, *worker.Task) error { return worker.Permanent(errors.New("bad")) }),
			func(c *worker.Config) { c.Observer = &r })
		n.deliver(w.put("a", "one"))
		got := r.take()
		last := got[len(got)-1]
		if d := cmp.Diff(engine.Notice{Kind: engine.Died, Key: rowKey("a"), Detail: "bad"}, last); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if got := w.log.having("dead", "s3://in/a", "bad"); len(got) != 1 {
			t.Errorf("logged %q", w.log.lines)
		}
		if len(w.log.lines) != 1 {
			t.Errorf("notices for metrics only were logged: %q", w.log.lines)
		}
	})
}

type discard struct{}

func (discard) Observe(engine.Notice) {}

func BenchmarkObserver(b *testing.B) {
	for name, o := range map[string]worker.Observer{"none": nil, "one": discard{}} {
		b.Run(name, func(b *testing.B) { benchmarkObserver(b, o) })
	}
}

func benchmarkObserver(b *testing.B, o worker.Observer) {
	w := worker.New(worker.Config{
		LedgerTimeout: ledgerTimeout,
		Ledger:        ledger.NewRows(memory.New()), Objects: membucket.New(time.Now, []string{"in"}), Policy: ledger.DefaultPolicy(),
		Pipelines:   []*worker.Pipeline{{Name: "upper", Match: func(event.Object) bool { return true }, Order: worker.EventOrder, Handler: worker.HandlerFunc(func(context.Context, *worker.Task) error { return nil })}},
		Concurrency: 16, MaxBacklogEvents: 1000, MaxBytes: 1 << 30, ShutdownTimeout: time.Second, AckSettled: true,
		Logger: slog.New(slog.DiscardHandler), Observer: o,
	})
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	seq, err := event.ParseSequencer("01")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		done := make(chan source.Outcome, 1)
		e := event.Event{Object: in(fmt.Sprint("k", n)), Kind: event.Created, Sequencer: seq, Dialect: event.AWS}
		if err := w.Deliver(ctx, source.Delivery{Events: []event.Event{e}, Done: func(o source.Outcome) { done <- o }}); err != nil {
			b.Fatal(err)
		}
		if out := <-done; !out.Ack {
			b.Fatal(out.Err)
		}
	}
	cancel()
	running.Wait()
}
