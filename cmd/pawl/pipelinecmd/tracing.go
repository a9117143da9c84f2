package pipelinecmd

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/metrics/otel"
)

// startTracing makes the runtime report to the returned tracer, which is nil if the environment has no
// endpoint for traces.
func startTracing(ctx context.Context, m *app.Runtime) (*otel.Tracer, error) {
	t, err := otel.New(ctx, otel.Config{Version: app.ThisBuild().Version, Logger: m.Log})
	if err != nil {
		return nil, &app.Failure{Code: app.ExitUsage, Err: err}
	}
	if t != nil {
		m.Parts.Tracer = t
		m.Log.Info("exporting traces")
	}
	return t, nil
}

func closeTracer(ctx context.Context, t *otel.Tracer, m *app.Runtime) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		m.Log.Warn("some spans were not exported", "error", err)
	}
}
