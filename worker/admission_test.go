package worker

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/memory"
)

// The delivery was admitted, but has not reached the loop yet.
func TestDeliveryAdmittedBeforeShutdownIsAnswered(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := New(Config{
			Ledger: ledger.NewRows(memory.New()), Policy: ledger.DefaultPolicy(), Concurrency: 1, MaxBacklogEvents: 10, MaxBytes: 1 << 20,
			SweepInterval: time.Second, ShutdownTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		if err := w.admission.enter(ctx, nil, true); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("Run returned without an answer")
		}
		answers := 0
		w.open.Store(uint64(1), &openDelivery{Delivery: source.Delivery{Done: func(source.Outcome) { answers++ }}})
		w.send(engine.Deliver{ID: 1})
		if err := <-ended; err != nil || answers != 1 {
			t.Errorf("ended with %v after %d answers", err, answers)
		}
	})
}
