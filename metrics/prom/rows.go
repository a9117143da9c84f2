package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/lock"
	"github.com/pawlhq/pawl/store"
)

const (
	rowsInterval = time.Minute
	rowsLimit    = 10_000 // per pipeline and interval
	rowsLease    = "metrics"
)

var unsettledStates = []ledger.State{ledger.StatePending, ledger.StateProcessing, ledger.StateStuck, ledger.StateFailed}

// ReportRows reads the unsettled rows of the pipelines once a minute until ctx ends. Only one process
// of a ledger does so at a time.
func (m *Metrics) ReportRows(ctx context.Context, records store.Store, log *slog.Logger) error {
	if len(m.config.Pipelines) == 0 {
		return errors.New("metrics: no pipelines are configured, so there are no rows to read")
	}
	led := ledger.NewRows(records)
	turn, err := lock.OnRegister(led, rowsLease, lock.Config{Owner: process.Name(), Reason: "metrics"})
	if err != nil {
		return err
	}
	for {
		held, err := turn.TryAcquire(ctx)
		if err == nil {
			err = m.reportWhileHeld(held.Context(), led)
			m.forgetRows()
			late, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			err = errors.Join(err, held.Release(late))
			stop()
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !errors.Is(err, lock.ErrHeld) {
			log.Warn("the metrics about rows are missing; trying again in a minute", "error", err)
		}
		if process.Sleep(ctx, rowsInterval) != nil {
			return nil
		}
	}
}

func (m *Metrics) reportWhileHeld(ctx context.Context, led *ledger.Rows) error {
	for {
		for _, p := range m.config.Pipelines {
			if err := m.reportPipeline(ctx, led, p); err != nil {
				return err
			}
		}
		m.gauges[rowsRead].WithLabelValues().Set(unix(time.Now()))
		if err := process.Sleep(ctx, rowsInterval); err != nil {
			return err
		}
	}
}

func (m *Metrics) reportPipeline(ctx context.Context, led *ledger.Rows, pipeline string) error {
	u, err := led.Unsettled(ctx, pipeline, time.Now(), rowsLimit)
	if err != nil {
		return fmt.Errorf("read the unsettled rows of pipeline %s: %w", pipeline, err)
	}
	for _, s := range unsettledStates {
		m.gauges[rows].WithLabelValues(pipeline, string(s)).Set(float64(u.ByState[s]))
	}
	truncated := 0.0
	if u.Truncated {
		truncated = 1
	}
	m.gauges[rowsTruncated].WithLabelValues(pipeline).Set(truncated)
	m.setTime(rowsOldest, u.Oldest, pipeline)
	return nil
}

// forgetRows removes the series about rows, so that only the process that reads them reports them.
func (m *Metrics) forgetRows() {
	for _, name := range []string{rows, rowsOldest, rowsTruncated, rowsRead} {
		m.gauges[name].Reset()
	}
}
