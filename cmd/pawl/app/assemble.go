package app

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
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/store"
)

// Runtime holds what a configuration describes.
type Runtime struct {
	Config    *config.Config
	Ledger    store.Store // nil until Open
	NewLedger string      // its location if Open created it
	Objects   *s3bucket.Store
	Parts     pawl.Config // without sources
	Log       *slog.Logger
	// readOnly opens the ledger for reading, and does not create it.
	readOnly bool
}

// Loader loads a configuration file.
type Loader func(name string, lookup func(string) (string, bool)) (*config.Config, error)

// WithRuntime calls do with the runtime of the configuration. The context of do ends at SIGINT or SIGTERM.
// Logs go to w.
func (a *App) WithRuntime(ctx context.Context, w io.Writer, level slog.Level, load Loader, readOnly bool, do func(context.Context, *Runtime) error) (err error) {
	log, err := a.Logger(w, level)
	if err != nil {
		return err
	}
	ctx, stop := UntilSignal(ctx, log)
	defer stop()
	m, err := a.Assemble(ctx, load, log, readOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return do(ctx, m)
}

// Configure returns a runtime with only the configuration and the object store.
func (a *App) Configure(ctx context.Context, load Loader, log *slog.Logger) (*Runtime, error) {
	c, err := load(a.ConfigFile, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	o, err := Objects(ctx, c)
	return &Runtime{Config: c, Log: log, Objects: o}, err
}

// Assemble returns a runtime, which the caller closes.
func (a *App) Assemble(ctx context.Context, load Loader, log *slog.Logger, readOnly bool) (_ *Runtime, err error) {
	m, err := a.Configure(ctx, load, log)
	if err != nil {
		return nil, err
	}
	m.readOnly = readOnly
	c := m.Config
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	m.Parts = pawl.Config{
		Objects: m.Objects, Logger: log,
		Lease: pawl.Lease{
			TTL: time.Duration(c.Lease.TTL), Skew: time.Duration(c.Lease.Skew), LateWriteWindow: time.Duration(c.Lease.LateWriteWindow),
		},
		Retry: pawl.Retry{
			Attempts: c.Retry.Attempts, Base: time.Duration(c.Retry.Base), Max: time.Duration(c.Retry.Max),
			Outage: time.Duration(c.Retry.Outage),
		},
		Audit: pawl.Audit{
			Every: time.Duration(c.Audit.Every), SettleWindow: time.Duration(c.Audit.SettleWindow),
			RowRetention: time.Duration(c.Audit.RowRetention), MaxDelay: time.Duration(c.Audit.MaxDelay),
			PurgeSettled: c.Audit.Purge == "settled",
		},
		Concurrency: c.Concurrency, MaxBacklogEvents: c.MaxBacklogEvents, MaxBytes: int64(c.MaxBytes),
		SweepInterval: time.Duration(c.SweepInterval), ShutdownTimeout: time.Duration(c.ShutdownTimeout),
	}
	if m.Parts.Pipelines, err = m.Pipelines(ctx); err != nil {
		return nil, err
	}
	if m.Parts.Ledger, err = m.Open(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// Build returns a Pawl that reads from the given sources.
func (m *Runtime) Build(sources ...pawl.Source) (*pawl.Pawl, error) {
	all := m.Parts
	all.Sources = sources
	p, err := pawl.New(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Config.Name(), err)
	}
	return p, nil
}

// Open opens the ledger at the first call, and creates it if it is missing. An invalid configuration must
// not create a ledger.
func (m *Runtime) Open(ctx context.Context) (store.Store, error) {
	if m.Ledger != nil {
		return m.Ledger, nil
	}
	l := m.Config.Ledger.Config.(parts.Ledger)
	absent := l.CheckExists(ctx)
	open := l.Open
	switch {
	case m.readOnly && absent != nil:
		open = parts.Memory{}.Open // instead of the missing one
	case m.readOnly:
		open = l.OpenReadOnly
	}
	s, err := open(ctx)
	if err != nil {
		return nil, err
	}
	m.Ledger = s
	if absent != nil && !m.readOnly {
		m.NewLedger = l.Describe()
		m.Log.Info("created a new, empty ledger", "ledger", m.NewLedger)
	}
	return s, nil
}

// Close closes the ledger if it is open.
func (m *Runtime) Close() error {
	if m.Ledger == nil {
		return nil
	}
	return m.Ledger.Close()
}

func (m *Runtime) assembly() *parts.Assembly {
	return &parts.Assembly{
		Logger: m.Log, Objects: m.Objects, Ledger: m.Open,
		Dir: filepath.Dir(m.Config.Name()), ShutdownTimeout: time.Duration(m.Config.ShutdownTimeout),
	}
}

// Sources builds the sources of the configuration.
func (m *Runtime) Sources(ctx context.Context) ([]pawl.Source, error) {
	all := make([]pawl.Source, len(m.Config.Sources))
	for i, s := range m.Config.Sources {
		var err error
		if all[i], err = s.Config.(parts.Source).Build(ctx, m.assembly()); err != nil {
			return nil, m.Config.At(fmt.Sprintf("sources[%d].%s", i, s.Kind), err)
		}
	}
	return all, nil
}

// Pipelines builds the pipelines of the configuration.
func (m *Runtime) Pipelines(ctx context.Context) ([]pawl.Pipeline, error) {
	all := make([]pawl.Pipeline, len(m.Config.Pipelines))
	for i := range m.Config.Pipelines {
		from := &m.Config.Pipelines[i]
		all[i] = pawl.Pipeline{
			Name:                 from.Name,
			Match:                pawl.Match(from.Match),
			EachVersion:          from.Identity == "version",
			EventuallyConsistent: m.Config.Objects.EventuallyConsistent,
			Concurrency:          from.Concurrency,
		}
		if from.Order == "event" {
			all[i].Order = pawl.EventOrder
		}
		if err := from.Action.Config.(parts.Action).Build(ctx, m.assembly(), &all[i]); err != nil {
			return nil, m.Config.At(fmt.Sprintf("pipelines[%d].%s", i, from.Action.Kind), err)
		}
	}
	return all, nil
}

// ErrPipelinesWithFiles rejects pipelines and files together: each message of a source reaches only one
// program.
func ErrPipelinesWithFiles(c *config.Config) error {
	return c.At("files", errors.New("cannot be combined with pipelines, because each message of a source reaches only one program: "+
		"move files to a separate configuration file with its own source"))
}
