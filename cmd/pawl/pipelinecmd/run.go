// Package pipelinecmd contains the commands about pipelines, and the function of AWS Lambda.
package pipelinecmd

import (
	"context"
	"errors"
	"log/slog"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
)

// NewRunCommand returns the command run.
func NewRunCommand(a *app.App) *cobra.Command {
	return a.WithAdminFlag(&cobra.Command{
		Use:   "run",
		Short: "Process notifications until interrupted",
		Long: `Run receives notifications from the configured sources and runs the pipelines until
it is interrupted. Any number of processes can share a ledger: they share the work,
and take over the work of crashed processes.

Run first starts the sources, because some stores wait for a listener. Before it
processes an object, it checks the ledger and every bucket. If a check fails, run
exits with 2. If an address or a queue cannot be used, run exits with 1.

At SIGINT or SIGTERM, run shuts down: it accepts no further work, waits for running
handlers for at most shutdown_timeout, and releases the rest. A second signal, at
least 500 ms later, stops run and the commands that it started at once. A shell then
shows exit code 130 (SIGINT) or 143 (SIGTERM). Other processes take over the
unfinished work when its leases expire.`,
		Example: `  pawl run
  pawl run -c /etc/pawl/pawl.yaml --log-level debug
  pawl run --admin 127.0.0.1:8080`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithRuntime(cmd.Context(), a.Err, slog.LevelInfo, pipelinesLoader(a), false, func(ctx context.Context, m *app.Runtime) error {
				return runPipelines(ctx, a, m)
			})
		},
	})
}

func runPipelines(ctx context.Context, a *app.App, m *app.Runtime) error {
	sources, err := m.Sources(ctx)
	if err != nil {
		return err
	}
	m.Parts.Check = func(ctx context.Context) error {
		err := checkAndAnnounce(ctx, m)
		if err == nil && ctx.Err() == nil {
			proveCopies(ctx, m)
			app.NotifySystemd(m.Log, "READY=1")
		}
		return err
	}
	defer context.AfterFunc(ctx, func() { app.NotifySystemd(m.Log, "STOPPING=1") })()
	tracer, err := startTracing(ctx, m)
	if err != nil {
		return err
	}
	defer closeTracer(ctx, tracer, m)
	mon, err := newMonitor(a, m)
	if err != nil {
		return err
	}
	p, err := m.Build(mon.watchSources(sources)...)
	if err != nil {
		return err
	}
	stop, err := mon.start(ctx, a, p)
	if err != nil {
		return err
	}
	defer stop()
	if err := p.Run(ctx); errors.Is(err, syscall.EADDRINUSE) {
		return app.Failed(err, "give each worker its own address, for example from an environment variable: docs/CONFIGURATION.md, \"Several workers\"")
	} else if err != nil {
		return app.WhileRunning(err)
	}
	s := p.Stats()
	m.Log.Info("shutdown complete", "completed", s.Completed, "already_committed", s.NothingToDo,
		"failed", s.Failed, "released", s.Released, "dead", s.Died)
	return nil
}

// The loader rejects a configuration without pipelines, so that no ledger is created for it.
func pipelinesLoader(a *app.App) app.Loader {
	return func(name string, lookup func(string) (string, bool)) (*config.Config, error) {
		c, err := a.Parts.Load(name, lookup)
		if err == nil && len(c.Pipelines) == 0 {
			err = c.At("pipelines", errors.New(`none configured: "pawl run" needs a pipeline; for archives run "pawl archive run", for files "pawl files serve"`))
		}
		if err == nil && c.Files != nil {
			err = app.ErrPipelinesWithFiles(c)
		}
		return c, err
	}
}

// An unavailable store is tolerated: like versitygw, it may wait until this process listens.
func checkAndAnnounce(ctx context.Context, m *app.Runtime) error {
	switch err := checkBuckets(ctx, m); {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, bucket.ErrUnavailable):
		m.Log.Warn("the object store is unavailable; starting anyway", "error", err)
	case err != nil:
		return err
	}
	announce(m)
	return nil
}

func announce(m *app.Runtime) {
	m.Log.Info("pawl started", "version", app.ThisBuild().Version, "config", m.Config.Name(),
		"ledger", m.Config.Ledger.Config.(parts.Ledger).Describe(), "objects", storeAddress(m))
	for i := range m.Parts.Pipelines {
		p := &m.Parts.Pipelines[i]
		args := []any{"name", p.Name, "action", m.Config.Pipelines[i].Action.Kind, "from", app.FormatPrefix(p.Match.Bucket, p.Match.Prefix)}
		if len(p.Match.Suffix) > 0 {
			args = append(args, "suffix", p.Match.Suffix)
		}
		if p.To != nil {
			args = append(args, "to", app.FormatPrefix(p.To.Bucket, p.To.Prefix))
		}
		m.Log.Info("pipeline", args...)
	}
	for _, s := range m.Config.Sources {
		m.Log.Info("source", s.Kind, s.Config.(parts.Source).Describe())
	}
	if len(m.Config.Sources) == 0 && !InLambda() {
		m.Log.Warn("no source configured: processing only the rows that are in the ledger")
	}
}
