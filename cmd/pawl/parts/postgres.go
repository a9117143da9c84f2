package parts

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
)

// Postgres is a ledger in a PostgreSQL database: postgres://USER@HOST/DATABASE.
type Postgres struct {
	// URL of the database; schema names the schema.
	URL string `yaml:"url"`
}

func parsePostgres(rest, _ string) (Postgres, error) {
	p := Postgres{"postgres:" + rest}
	u, err := url.Parse(p.URL)
	if err != nil || !strings.HasPrefix(rest, "//") || strings.Trim(u.Path, "/") == "" {
		return Postgres{}, errors.New("invalid URL: write postgres://user:password@host:5432/database, with %-escapes in the password")
	}
	return p, nil
}

// Open implements [Ledger].
func (p Postgres) Open(ctx context.Context) (store.Store, error) { return postgres.Open(ctx, p.URL) }

// OpenReadOnly implements [Ledger].
func (p Postgres) OpenReadOnly(ctx context.Context) (store.Store, error) {
	return postgres.OpenReadOnly(ctx, p.URL)
}

// CheckExists implements [Ledger]. Open reports a missing database.
func (p Postgres) CheckExists(context.Context) error { return nil }

// Describe implements [Ledger].
func (p Postgres) Describe() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "postgres"
	}
	kept := url.Values{} // other parameters may be secret: password, sslpassword
	if name := u.Query().Get("schema"); name != "" {
		kept.Set("schema", name)
	}
	u.RawQuery = kept.Encode()
	return u.Redacted()
}

// Check implements [Checker].
func (p Postgres) Check(ctx context.Context, skew time.Duration) ([]Finding, error) {
	return postgres.Check(ctx, p.URL, skew)
}

// Script implements [Migrator].
func (p Postgres) Script() string {
	name := postgres.DefaultSchema
	if u, err := url.Parse(p.URL); err == nil && u.Query().Get("schema") != "" {
		name = u.Query().Get("schema")
	}
	return postgres.Migrations(name, 0)
}
