package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics"
	"github.com/pawlhq/pawl/store"
)

const (
	rowsLimit = 10_000 // per pipeline and interval
	rowsLease = "metrics"
)

var unsettledStates = []ledger.State{ledger.StatePending, ledger.StateProcessing, ledger.StateStuck, ledger.StateFailed}

// ReportRows reads the unsettled rows of the pipelines once a minute until ctx ends. Only one process
// of a ledger does so at a time. It then calls onRows with the rows of each pipeline.
func (m *Metrics) ReportRows(ctx context.Context, records store.Store, log *slog.Logger, onRows ...func(context.Context, map[string]ledger.Unsettled)) error {
	if len(m.config.Pipelines) == 0 {
		return errors.New("metrics: no pipelines are configured, so there are no rows to read")
	}
	led := ledger.NewRows(records)
	return metrics.InOneProcess(ctx, led, rowsLease, log, func(ctx context.Context) error {
		all := map[string]ledger.Unsettled{}
		for _, p := range m.config.Pipelines {
			u, err := led.Unsettled(ctx, p, time.Now(), rowsLimit)
			if err != nil {
				return fmt.Errorf("read the unsettled rows of pipeline %s: %w", p, err)
			}
			m.reportPipeline(p, &u)
			all[p] = u
		}
		m.gauges[rowsRead].WithLabelValues().Set(unix(time.Now()))
		for _, report := range onRows {
			report(ctx, all)
		}
		return nil
	}, m.forgetRows)
}

func (m *Metrics) reportPipeline(pipeline string, u *ledger.Unsettled) {
	for _, s := range unsettledStates {
		m.gauges[rows].WithLabelValues(pipeline, string(s)).Set(float64(u.ByState[s]))
	}
	truncated := 0.0
	if u.Truncated {
		truncated = 1
	}
	m.gauges[rowsTruncated].WithLabelValues(pipeline).Set(truncated)
	m.setTime(rowsOldest, u.Oldest, pipeline)
}

// forgetRows removes the series about rows, so that only the process that reads them reports them.
func (m *Metrics) forgetRows() {
	for _, name := range []string{rows, rowsOldest, rowsTruncated, rowsRead} {
		m.gauges[name].Reset()
	}
}
