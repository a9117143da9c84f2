package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
)

func newRunCommand(a *app) *cobra.Command {
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMachine(cmd.Context(), a.Err, slog.LevelInfo, a.loadPipelines, false, func(ctx context.Context, m *machine) error {
				return m.run(ctx)
			})
		},
	}
}

func (m *machine) run(ctx context.Context) error {
	sources, err := m.sources(ctx)
	if err != nil {
		return err
	}
	m.parts.Check = func(ctx context.Context) error {
		err := m.check(ctx)
		if err == nil {
			m.proveCopies(ctx)
		}
		return err
	}
	p, err := m.build(sources...)
	if err != nil {
		return err
	}
	if err := p.Run(ctx); errors.Is(err, syscall.EADDRINUSE) {
		return failed(err, "each worker of a ledger needs an address of its own, from a variable for example: docs/CONFIGURATION.md, \"Several workers\"")
	} else if err != nil {
		return whileRunning(err)
	}
	s := p.Stats()
	m.log.Info("pawl ended in order", "completed", s.Completed, "nothing_to_do", s.NothingToDo,
		"failed", s.Failed, "given_back", s.Released, "dead", s.Died)
	return nil
}

// loadPipelines refuses a file that has none, before a ledger is made for it.
func (a *app) loadPipelines(name string, lookup func(string) (string, bool)) (*config.Config, error) {
	c, err := a.parts.Load(name, lookup)
	if err == nil && len(c.Pipelines) == 0 {
		err = c.At("pipelines", errors.New(`there is none, which "pawl run" needs: archives are stored by "pawl archive run", files are served by "pawl files serve"`))
	}
	if err == nil && c.Files != nil {
		err = errShared(c)
	}
	return c, err
}

// check looks at the buckets, and announces what is done with them. A store that is down may be waiting for this very
// process to listen, as versitygw does, and what fails meanwhile is tried again.
func (m *machine) check(ctx context.Context) error {
	switch err := m.checkBuckets(ctx); {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, bucket.ErrUnavailable):
		m.log.Warn("the object store does not answer yet; starting all the same", "error", err)
	case err != nil:
		return err
	}
	m.announce()
	return nil
}

// announce logs what the process is going to do.
func (m *machine) announce() {
	m.log.Info("pawl runs", "version", thisBuild().Version, "config", m.config.Name(),
		"ledger", m.config.Ledger.Config.(parts.Ledger).Describe(), "objects", cmp.Or(m.config.Objects.Endpoint, "Amazon S3"))
	for i := range m.parts.Pipelines {
		p := &m.parts.Pipelines[i]
		args := []any{"name", p.Name, "action", m.config.Pipelines[i].Action.Kind, "from", place(p.Match.Bucket, p.Match.Prefix)}
		if len(p.Match.Suffix) > 0 {
			args = append(args, "suffix", p.Match.Suffix)
		}
		if p.To != nil {
			args = append(args, "to", place(p.To.Bucket, p.To.Prefix))
		}
		m.log.Info("pipeline", args...)
	}
	for _, s := range m.config.Sources {
		m.log.Info("source", s.Kind, s.Config.(parts.Source).Describe())
	}
	if len(m.config.Sources) == 0 && !InLambda() {
		m.log.Warn("no source: only what the ledger knows already is worked on")
	}
}

// place prints where a pipeline's objects are.
func place(bucket, prefix string) string {
	return event.Object{Bucket: bucket, Key: prefix}.String()
}
