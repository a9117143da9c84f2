package memledger_test

import (
	"testing"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/ledgertest"
	"github.com/pawlhq/pawl/ledger/memledger"
)

func TestConformance(t *testing.T) {
	ledgertest.Run(t, ledgertest.Harness{
		Registers: true,
		New: func(*testing.T) ledgertest.Open {
			return func() (ledger.Store, error) { return memledger.New(), nil }
		},
	})
}
