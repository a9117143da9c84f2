package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/parts"
	"github.com/pawlhq/pawl/store"
)

// machine is a configuration turned into parts, with the ledger open.
type machine struct {
	config  *config.Config
	ledger  store.Store // nil until it is open
	begun   string      // where the ledger is, if it was not there before
	objects *s3bucket.Store
	parts   pawl.Config // without sources
	log     *slog.Logger
	// readOnly: the command changes nothing, and makes no ledger.
	readOnly bool
}

// loader is the table's Load or one of its like.
type loader func(name string, lookup func(string) (string, bool)) (*config.Config, error)

// withMachine assembles the machine of the configuration, and calls do with it and
// with a context that ends at a signal. It logs to w from level on. With readOnly the
// ledger can only be read.
func (a *app) withMachine(ctx context.Context, w io.Writer, level slog.Level, load loader, readOnly bool, do func(context.Context, *machine) error) (err error) {
	log, err := a.logger(w, level)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	m, err := a.assemble(ctx, load, log, readOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	return do(ctx, m)
}

// configure loads the configuration and reaches for the object store. The machine
// has no other parts and no ledger.
func (a *app) configure(ctx context.Context, load loader, log *slog.Logger) (*machine, error) {
	c, err := load(a.configFile, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	o, err := objects(ctx, c)
	return &machine{config: c, log: log, objects: o}, err
}

// assemble loads the configuration, makes its parts and opens the ledger. The
// caller closes the machine.
func (a *app) assemble(ctx context.Context, load loader, log *slog.Logger, readOnly bool) (_ *machine, err error) {
	m, err := a.configure(ctx, load, log)
	if err != nil {
		return nil, err
	}
	m.readOnly = readOnly
	c := m.config
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	m.parts = pawl.Config{
		Objects: m.objects, Logger: log,
		Lease: pawl.Lease{
			TTL: time.Duration(c.Lease.TTL), Skew: time.Duration(c.Lease.Skew), Horizon: time.Duration(c.Lease.Horizon),
		},
		Retry: pawl.Retry{
			Attempts: c.Retry.Attempts, Base: time.Duration(c.Retry.Base), Max: time.Duration(c.Retry.Max),
			Outage: time.Duration(c.Retry.Outage),
		},
		Audit: pawl.Audit{
			Every: time.Duration(c.Audit.Every), Settle: time.Duration(c.Audit.Settle),
			Retain: time.Duration(c.Audit.Retain), MaxDelay: time.Duration(c.Audit.MaxDelay),
			PurgeSettled: c.Audit.Purge == "settled",
		},
		Concurrency: c.Concurrency, Backlog: c.Backlog, MaxBytes: int64(c.MaxBytes),
		Sweep: time.Duration(c.Sweep), Grace: time.Duration(c.Grace),
	}
	if m.parts.Pipelines, err = m.pipelines(ctx); err != nil {
		return nil, err
	}
	if m.parts.Ledger, err = m.open(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// build makes the Pawl that reads from the sources.
func (m *machine) build(sources ...pawl.Source) (*pawl.Pawl, error) {
	all := m.parts
	all.Sources = sources
	p, err := pawl.New(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.config.Name(), err)
	}
	return p, nil
}

func objects(ctx context.Context, c *config.Config) (*s3bucket.Store, error) {
	s, err := s3bucket.New(ctx, s3bucket.Config{
		Endpoint: c.Objects.Endpoint, Region: c.Objects.Region, PathStyle: c.Objects.PathStyle,
	})
	if err != nil {
		return nil, c.At("objects", err)
	}
	return s, nil
}

// open returns the ledger, which it opens the first time. An action that does
// not need it can so be refused before a ledger is made.
func (m *machine) open(ctx context.Context) (store.Store, error) {
	if m.ledger != nil {
		return m.ledger, nil
	}
	l := m.config.Ledger.Config.(parts.Ledger)
	absent := l.Look(ctx)
	open := l.Open
	switch {
	case m.readOnly && absent != nil:
		open = parts.Memory{}.Open // empty, as the one that is not there
	case m.readOnly:
		open = l.OpenReadOnly
	}
	s, err := open(ctx)
	if err != nil {
		return nil, err
	}
	m.ledger = s
	if absent != nil && !m.readOnly {
		m.begun = l.Describe()
		m.log.Info("a new ledger begins: it knows of no object yet", "ledger", m.begun)
	}
	return s, nil
}

// close closes the ledger, if it is open.
func (m *machine) close() error {
	if m.ledger == nil {
		return nil
	}
	return m.ledger.Close()
}

// assembly is what the machine offers to its parts.
func (m *machine) assembly() *parts.Assembly {
	return &parts.Assembly{
		Logger: m.log, Objects: m.objects, Ledger: m.open,
		Dir: filepath.Dir(m.config.Name()), Grace: time.Duration(m.config.Grace),
	}
}

// sources makes the sources of the configuration.
func (m *machine) sources(ctx context.Context) ([]pawl.Source, error) {
	all := make([]pawl.Source, len(m.config.Sources))
	for i, s := range m.config.Sources {
		var err error
		if all[i], err = s.Config.(parts.Source).Build(ctx, m.assembly()); err != nil {
			return nil, m.config.At(fmt.Sprintf("sources[%d].%s", i, s.Kind), err)
		}
	}
	return all, nil
}

// pipelines makes the pipelines of the configuration.
func (m *machine) pipelines(ctx context.Context) ([]pawl.Pipeline, error) {
	all := make([]pawl.Pipeline, len(m.config.Pipelines))
	for i := range m.config.Pipelines {
		from := &m.config.Pipelines[i]
		all[i] = pawl.Pipeline{
			Name:        from.Name,
			Match:       pawl.Match(from.Match),
			EachVersion: from.Identity == "version",
			Eventual:    m.config.Objects.Eventual,
			Concurrency: from.Concurrency,
		}
		if from.Order == "event" {
			all[i].Order = pawl.EventOrder
		}
		if err := from.Action.Config.(parts.Action).Build(ctx, m.assembly(), &all[i]); err != nil {
			return nil, m.config.At(fmt.Sprintf("pipelines[%d].%s", i, from.Action.Kind), err)
		}
	}
	return all, nil
}
