package worker_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/worker"
)

// node is a running worker with its own connections to the store and the ledger.
type node struct {
	*worker.Worker
	world  *world
	store  *buckettest.Faults
	ledger *faultyLedger
	pauser *pauser
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

func (w *world) start(p *worker.Pipeline, with ...func(*worker.Config)) *node {
	n := &node{
		world: w, store: buckettest.NewFaults(w.objects), pauser: &pauser{}, ended: make(chan struct{}),
	}
	n.ledger = &faultyLedger{Store: w.rows, recorder: w.recorder, pauser: n.pauser}
	cfg := worker.Config{
		LedgerTimeout: ledgerTimeout,
		Ledger:        n.ledger, Objects: recorded{halting{n.store, n.pauser}, w.recorder}, Pipelines: []*worker.Pipeline{p},
		Policy: ledger.DefaultPolicy(), Concurrency: 4, MaxBacklogEvents: 100, MaxBytes: 1 << 30,
		SweepInterval: time.Second, ShutdownTimeout: 20 * time.Second, Logger: slog.New(w.log),
	}
	for _, f := range with {
		f(&cfg)
	}
	n.Worker = worker.New(cfg)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	n.cancel = cancel
	go func() {
		defer close(n.ended)
		n.err = n.Run(ctx)
	}()
	w.t.Cleanup(func() { _ = n.stop() })
	return n
}

func (n *node) stop() error {
	n.cancel()
	<-n.ended
	return n.err
}

// deliver waits until the worker is idle in virtual time.
func (n *node) deliver(events ...event.Event) *answers {
	n.world.t.Helper()
	a := &answers{}
	if err := n.Deliver(n.world.t.Context(), source.Delivery{Events: events, Done: a.take}); err != nil {
		n.world.t.Fatalf("not taken: %v", err)
	}
	synctest.Wait()
	return a
}

// answers records the answers to a delivery, of which there must be one.
type answers struct {
	mu  sync.Mutex
	got []source.Outcome
}

func (a *answers) take(o source.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, o)
}

func (a *answers) all() []source.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got)
}

func (a *answers) wantAck(w *world) {
	w.t.Helper()
	if got := a.all(); len(got) != 1 || !got[0].Ack || got[0].Err != nil {
		w.t.Errorf("after %s the answers are %+v, want one acknowledgement", w.since(), got)
	}
}
