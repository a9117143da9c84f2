package sqliteledger_test

import (
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/ledgertest"
	"github.com/pawlhq/pawl/ledger/sqliteledger"
)

func TestConformance(t *testing.T) {
	ledgertest.Run(t, ledgertest.Harness{
		Durable: true, Registers: true,
		Shared: true,
		New: func(t *testing.T) ledgertest.Open {
			path := filepath.Join(t.TempDir(), "pawl.db")
			return func() (ledger.Store, error) { return sqliteledger.Open(t.Context(), path) }
		},
	})
}
