// Package pipelinecmd contains the commands about pipelines: run, replay, ls, explain, redrive, purge, audit and ledger, and the function of AWS Lambda.
package pipelinecmd

import (
	"cmp"
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
	return &cobra.Command{
		Use:   "run",
		Short: "Take notifications and do what the pipelines say",
		Long: `Run takes notifications from the sources of the configuration and does what its
pipelines say, until it is told to end. Any number of processes may run over one
ledger: they share the work, and take over from each other.

The sources listen first, for some stores wait for that. Before an object is
worked on, the ledger and every bucket are looked at: what cannot work ends the
command, with exit code 2. An address that cannot be listened on, or a queue that
cannot be used, ends it with 1.

SIGINT or SIGTERM ends it in order: nothing new is taken, running work may finish
within the grace, the rest is given back. A second signal, half a second later or
more, ends it at once, with the commands that it has started: it dies of that signal, which a shell
shows as exit code 130 (SIGINT) or 143 (SIGTERM). What was under way is then
taken over when its leases have expired.`,
		Example: `  pawl run
  pawl run -c /etc/pawl/pawl.yaml --log-level debug`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithRuntime(cmd.Context(), a.Err, slog.LevelInfo, pipelinesLoader(a), false, runPipelines)
		},
	}
}

func runPipelines(ctx context.Context, m *app.Runtime) error {
	sources, err := m.Sources(ctx)
	if err != nil {
		return err
	}
	m.Parts.Check = func(ctx context.Context) error {
		err := checkAndAnnounce(ctx, m)
		if err == nil {
			proveCopies(ctx, m)
		}
		return err
	}
	p, err := m.Build(sources...)
	if err != nil {
		return err
	}
	if err := p.Run(ctx); errors.Is(err, syscall.EADDRINUSE) {
		return app.Failed(err, "each worker of a ledger needs an address of its own, from a variable for example: docs/CONFIGURATION.md, \"Several workers\"")
	} else if err != nil {
		return app.WhileRunning(err)
	}
	s := p.Stats()
	m.Log.Info("pawl ended in order", "completed", s.Completed, "nothing_to_do", s.NothingToDo,
		"failed", s.Failed, "given_back", s.Released, "dead", s.Died)
	return nil
}

// pipelinesLoader returns a loader that rejects a configuration without pipelines,
// before a ledger is made for it.
func pipelinesLoader(a *app.App) app.Loader {
	return func(name string, lookup func(string) (string, bool)) (*config.Config, error) {
		c, err := a.Parts.Load(name, lookup)
		if err == nil && len(c.Pipelines) == 0 {
			err = c.At("pipelines", errors.New(`there is none, which "pawl run" needs: archives are stored by "pawl archive run", files are served by "pawl files serve"`))
		}
		if err == nil && c.Files != nil {
			err = app.ErrPipelinesWithFiles(c)
		}
		return c, err
	}
}

// checkAndAnnounce looks at the buckets, and announces what is done with them. A store that is down may be waiting for this very
// process to listen, as versitygw does, and what fails meanwhile is tried again.
func checkAndAnnounce(ctx context.Context, m *app.Runtime) error {
	switch err := checkBuckets(ctx, m); {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, bucket.ErrUnavailable):
		m.Log.Warn("the object store does not answer yet; starting all the same", "error", err)
	case err != nil:
		return err
	}
	announce(m)
	return nil
}

// announce logs what the process is going to do.
func announce(m *app.Runtime) {
	m.Log.Info("pawl runs", "version", app.ThisBuild().Version, "config", m.Config.Name(),
		"ledger", m.Config.Ledger.Config.(parts.Ledger).Describe(), "objects", cmp.Or(m.Config.Objects.Endpoint, "Amazon S3"))
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
		m.Log.Warn("no source: only what the ledger knows already is worked on")
	}
}
