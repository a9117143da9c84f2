// Package metrics has what the packages of metrics and alerts share.
//
// # Metrics for Prometheus
//
// Package metrics/prom collects metrics from the observer of a Pawl:
//
//	m := prom.New(prom.Config{Pipelines: []string{"thumbnails"}})
//	cfg.Observer = m
//	p, err := pawl.New(cfg)
//	…
//	m.Watch(p)
//	mux.Handle("/metrics", m.Handler())
//
// # Traces
//
// Package metrics/otel records deliveries and attempts as spans of OpenTelemetry.
//
// # Alerts
//
// Package metrics/alerts posts messages about conditions that need an operator.
//
// # Read the ledger in one process
//
// Metrics of the whole ledger need one reader among all its processes. [InOneProcess] elects it.
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/lock"
)

// Interval is the interval between two ticks of [InOneProcess].
const Interval = time.Minute

// InOneProcess calls tick at once and once a minute until ctx ends, in the process that holds the lease.
// After an error of tick, and when the process loses the lease, it calls forget and tries again.
func InOneProcess(ctx context.Context, r ledger.Registers, lease string, log *slog.Logger, tick func(context.Context) error, forget func()) error {
	turn, err := lock.OnRegister(r, lease, lock.Config{Owner: process.Name(), Reason: "metrics"})
	if err != nil {
		return err
	}
	for {
		held, err := turn.TryAcquire(ctx)
		if err == nil {
			err = tickWhileHeld(held.Context(), tick)
			forget()
			late, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			err = errors.Join(err, held.Release(late))
			stop()
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !errors.Is(err, lock.ErrHeld) {
			log.Warn("metrics or alerts are missing; trying again in a minute", "lease", lease, "error", err)
		}
		if process.Sleep(ctx, Interval) != nil {
			return nil
		}
	}
}

func tickWhileHeld(ctx context.Context, tick func(context.Context) error) error {
	for {
		if err := tick(ctx); err != nil {
			return err
		}
		if err := process.Sleep(ctx, Interval); err != nil {
			return err
		}
	}
}
