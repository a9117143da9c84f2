package parts

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/loadaction"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/postgres"
)

// Load loads the object into a table of the ledger's database.
type Load struct {
	// Name of the table, with or without its schema.
	Table string `yaml:"table" jsonschema:"required"`
	// Format of the objects. Each may be compressed with gzip or zstd.
	Format string `yaml:"format" jsonschema:"required,enum=csv,enum=ndjson,enum=parquet"`
	// Text column for the URL of the object. Default: _source.
	Source string `yaml:"source"`
	// Maximum size of a file, uncompressed. Default: 1GiB.
	MaxBytes config.Size `yaml:"max_bytes"`
	// Maximum length of a line, or of a CSV record. Default: 1MiB.
	MaxLine config.Size `yaml:"max_line"`
}

// Build implements [Action].
func (l Load) Build(ctx context.Context, a *Assembly, p *pawl.Pipeline) error {
	records, err := a.Ledger(ctx)
	if err != nil {
		return err
	}
	pg, ok := records.(*postgres.Store)
	if !ok {
		return errors.New("load: the table must be in the ledger's database: use a ledger in PostgreSQL (ledger: postgres://…)")
	}
	p.Transactional = true
	p.Handler, err = loadaction.New(ctx, loadaction.Config{
		Pool: pg.Pool(), Table: l.Table, Format: l.Format, Source: l.Source,
		MaxBytes: int64(l.MaxBytes), MaxLine: int(l.MaxLine), Logger: a.Logger,
		Complete: func(ctx context.Context, tx pgx.Tx, t *pawl.Task) error { return ledger.Complete(ctx, pg.In(tx), t) },
	})
	return err
}
