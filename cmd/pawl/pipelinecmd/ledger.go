package pipelinecmd

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
)

type ledgerReader struct {
	ledger.Store
	config *config.Config
}

// --ledger replaces the configuration file.
func addLedgerFlag(a *app.App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.Ledger, "ledger", "", "use this `ledger`, for example sqlite:pawl.db, instead of a configuration file")
}

// If the command line names the ledger, the configuration contains nothing else.
func loadLedgerConfig(a *app.App) (*config.Config, error) {
	if a.Ledger == "" {
		c, err := a.Parts.LoadLedger(a.ConfigFile, os.LookupEnv)
		if _, absent := os.Stat(a.ConfigFile); !a.ConfigSet && errors.Is(absent, fs.ErrNotExist) {
			err = &app.Failure{Code: app.ExitUsage, Err: err, Hint: "to read a ledger without a configuration file, use --ledger sqlite:FILE"}
		}
		return c, err
	}
	if a.ConfigSet {
		return nil, app.Usage("--ledger and --config cannot be combined")
	}
	c, err := a.Parts.LedgerAlone(a.Ledger)
	if err != nil {
		return nil, app.Usage("--ledger %s: %w", event.Quote(a.Ledger), err)
	}
	return c, nil
}

// The caller closes the ledger.
func openReadOnly(ctx context.Context, a *app.App) (*ledgerReader, error) {
	return openLedger(ctx, a, parts.Ledger.OpenReadOnly)
}

// The caller closes the ledger.
func openLedger(ctx context.Context, a *app.App, open func(parts.Ledger, context.Context) (store.Store, error)) (*ledgerReader, error) {
	c, err := loadLedgerConfig(a)
	if err != nil {
		return nil, err
	}
	l := c.Ledger.Config.(parts.Ledger)
	if err := l.CheckExists(ctx); err != nil {
		if a.Ledger != "" {
			return nil, app.Misconfigured(err)
		}
		return nil, c.At("ledger", err)
	}
	s, err := open(l, ctx)
	if err != nil {
		return nil, err
	}
	return &ledgerReader{Store: ledger.NewRows(s), config: c}, nil
}

// closeInto adds an error of the close to err.
func (v *ledgerReader) closeInto(err *error) { *err = errors.Join(*err, v.Close()) }
