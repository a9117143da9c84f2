package pgledger

import (
	"context"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/ledgertest"
)

func TestConformance(t *testing.T) {
	server := servertest.Postgres(t, "max_connections=400")
	var schemas atomic.Int64
	t.Run("suite", func(t *testing.T) {
		ledgertest.Run(t, ledgertest.Harness{
			Durable: true, Registers: true,
			Shared: true,
			Complete: func(ctx context.Context, s ledger.Store, c *ledger.Completion) error {
				return pgx.BeginFunc(ctx, s.(*Store).Pool(), func(tx pgx.Tx) error {
					return Complete(ctx, tx, task(func() (*ledger.Completion, error) { return c, nil }))
				})
			},
			New: func(t *testing.T) ledgertest.Open {
				name := "Suite \"" + strconv.FormatInt(schemas.Add(1), 10)
				at := server.With(func(_ *url.URL, p url.Values) { p.Set("schema", name) })
				return func() (ledger.Store, error) { return Open(t.Context(), at) }
			},
		})
	})
}
