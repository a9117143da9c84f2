package cli

import (
	"context"
	"errors"
	"os"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/parts"
	"github.com/pawlhq/pawl/ledger"
)

// view is a ledger to look into, and the configuration that names it.
type view struct {
	ledger.Store
	config *config.Config
}

// look opens the ledger of the configuration for a command that does no work.
// The caller closes it.
func (a *app) look(ctx context.Context) (*view, error) {
	c, err := a.parts.LoadToLook(a.configFile, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	l := c.Ledger.Config.(parts.Ledger)
	if err := l.Look(ctx); err != nil {
		return nil, c.At("ledger", err)
	}
	s, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &view{Store: s, config: c}, nil
}

// close closes the ledger at the end of a command that ends with err.
func (v *view) close(err *error) { *err = errors.Join(*err, v.Close()) }
