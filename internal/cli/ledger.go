package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
)

// view is a ledger to look into, and the configuration that names it.
type view struct {
	ledger.Store
	config *config.Config
}

// addLedgerFlag adds the flag of commands that need no configuration but for its
// ledger.
func (a *app) addLedgerFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.ledger, "ledger", "", "the `ledger`, like sqlite:pawl.db, instead of that of a configuration file")
}

// toLook loads the configuration for a command that does no work. Where the command
// line names the ledger, it says nothing else.
func (a *app) toLook() (*config.Config, error) {
	if a.ledger == "" {
		c, err := a.parts.LoadToLook(a.configFile, os.LookupEnv)
		if _, absent := os.Stat(a.configFile); !a.named && errors.Is(absent, fs.ErrNotExist) {
			err = &failure{exitUsage, err, "--ledger sqlite:FILE looks into a ledger without a configuration"}
		}
		return c, err
	}
	if a.named {
		return nil, usage("--ledger and --config exclude each other")
	}
	c, err := a.parts.LedgerAlone(a.ledger)
	if err != nil {
		return nil, usage("--ledger %s: %w", event.Quote(a.ledger), err)
	}
	return c, nil
}

// look opens the ledger for a command that only reads. The caller closes it.
func (a *app) look(ctx context.Context) (*view, error) {
	return a.view(ctx, parts.Ledger.OpenReadOnly)
}

// view opens a ledger that is there. The caller closes it.
func (a *app) view(ctx context.Context, open func(parts.Ledger, context.Context) (store.Store, error)) (*view, error) {
	c, err := a.toLook()
	if err != nil {
		return nil, err
	}
	l := c.Ledger.Config.(parts.Ledger)
	if err := l.Look(ctx); err != nil {
		if a.ledger != "" {
			return nil, misconfigured(err)
		}
		return nil, c.At("ledger", err)
	}
	s, err := open(l, ctx)
	if err != nil {
		return nil, err
	}
	return &view{Store: ledger.Over(s), config: c}, nil
}

// close closes the ledger at the end of a command that ends with err.
func (v *view) close(err *error) { *err = errors.Join(*err, v.Close()) }
