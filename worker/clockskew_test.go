package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/worker"
)

func TestClockSkewBetweenWorkers(t *testing.T) {
	for _, c := range []struct {
		ahead   time.Duration // of the second worker's clock
		overlap bool
	}{
		{-time.Minute, false},
		{-skew, false},
		{0, false},
		{skew - time.Second, false},
		{skew, false},
		{skew + 10*time.Second, true},
		{10 * time.Minute, true},
	} {
		t.Run(c.ahead.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				var ended, began time.Duration
				first := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					<-ctx.Done()
					ended = w.since()
					return write(task, "made by the first")
				}))
				first.deliver(w.put("a", "one"))
				first.ledger.disconnect()
				second := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					began = w.since()
					return upper(ctx, task)
				}), func(c2 *worker.Config) { c2.Ledger.(*faultyLedger).ahead = c.ahead })
				second.deliver(w.event(in("a"), event.Created))
				w.pass(10 * time.Minute)
				if ended != ttl || (began < ended) != c.overlap {
					t.Errorf("the first ended at %s, the second began at %s", ended, began)
				}
				w.wantOutput("a", "ONE")
			})
		})
	}
}
