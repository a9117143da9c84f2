package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source/webhooksource"
)

// machine is a configuration turned into parts, with the ledger open.
type machine struct {
	config  *config.Config
	ledger  ledger.Store
	objects *s3bucket.Store
	parts   pawl.Config // without sources
	log     *slog.Logger
}

// loader is config.Load or one of its like.
type loader func(name string, lookup func(string) (string, bool)) (*config.Config, error)

// assemble loads the configuration, makes its parts and opens the ledger. The
// caller closes the machine's ledger.
func (a *app) assemble(ctx context.Context, load loader, log *slog.Logger) (*machine, error) {
	c, err := load(a.configFile, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	m := &machine{config: c, log: log}
	if m.objects, err = objects(ctx, c); err != nil {
		return nil, err
	}
	pipelines, err := pipelines(c, log)
	if err != nil {
		return nil, err
	}
	m.parts = pawl.Config{
		Objects: m.objects, Pipelines: pipelines, Logger: log,
		Lease: pawl.Lease{
			TTL: time.Duration(c.Lease.TTL), Skew: time.Duration(c.Lease.Skew), Horizon: time.Duration(c.Lease.Horizon),
		},
		Retry: pawl.Retry{
			Attempts: c.Retry.Attempts, Base: time.Duration(c.Retry.Base), Max: time.Duration(c.Retry.Max),
		},
		Concurrency: c.Concurrency, Backlog: c.Backlog, MaxBytes: int64(c.MaxBytes),
		Sweep: time.Duration(c.Sweep), Grace: time.Duration(c.Grace),
	}
	if m.ledger, err = openLedger(ctx, c.Ledger); err != nil {
		return nil, err
	}
	m.parts.Ledger = m.ledger
	return m, nil
}

// build makes the Pawl that reads from the sources.
func (m *machine) build(sources ...pawl.Source) (*pawl.Pawl, error) {
	parts := m.parts
	parts.Sources = sources
	p, err := pawl.New(parts)
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

// sources makes the sources of the configuration.
func (m *machine) sources() ([]pawl.Source, error) {
	var all []pawl.Source
	for i, s := range m.config.Sources {
		dialect, err := event.ParseDialect(string(s.Webhook.Dialect))
		if err != nil {
			return nil, err
		}
		hook, err := webhooksource.New(webhooksource.Config{
			Listen: s.Webhook.Listen, Path: s.Webhook.Path,
			Token: s.Webhook.Token.Reveal(), Secret: s.Webhook.Secret.Reveal(),
			Dialect: dialect, TrustSequencer: s.Webhook.TrustSequencer,
			Grace: time.Duration(m.config.Grace), Logger: m.log,
		})
		if err != nil {
			return nil, m.config.At(fmt.Sprintf("sources[%d].webhook", i), err)
		}
		all = append(all, hook)
	}
	return all, nil
}
