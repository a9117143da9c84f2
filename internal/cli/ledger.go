package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/memledger"
	"github.com/pawlhq/pawl/ledger/sqliteledger"
)

// openLedger opens the ledger to work with. The caller closes it.
func openLedger(ctx context.Context, l config.Ledger) (ledger.Store, error) {
	if l.Kind == "memory" {
		return memledger.New(), nil
	}
	return sqliteledger.Open(ctx, l.Path)
}

// view is a ledger to look into, and the configuration that names it.
type view struct {
	ledger.Store
	config *config.Config
}

// look opens the ledger of the configuration for a command that does no work.
// The caller closes it.
func (a *app) look(ctx context.Context) (*view, error) {
	c, err := config.LoadToLook(a.configFile, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if c.Ledger.Kind == "memory" {
		return nil, misconfigured(c.At("ledger", errors.New(
			"nobody but its own process can look into a ledger in memory: use sqlite:FILE")))
	}
	if _, err := os.Stat(c.Ledger.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, &failure{
			code: exitUsage,
			err:  fmt.Errorf("there is no ledger at %s", event.Quote(c.Ledger.Path)),
			hint: `"pawl run" makes it; a relative file name counts from the working directory`,
		}
	}
	s, err := openLedger(ctx, c.Ledger)
	if err != nil {
		return nil, err
	}
	return &view{Store: s, config: c}, nil
}

// close closes the ledger at the end of a command that ends with err.
func (v *view) close(err *error) { *err = errors.Join(*err, v.Close()) }
