// Package pgledger keeps a ledger in PostgreSQL, for workers on many machines: in
// a schema of its own, beside what else the database holds.
//
// It keeps no session state and prepares no named statements, so a pooler in
// transaction mode, like PgBouncer, may stand in between.
//
// A handler that does its SQL in the same database can commit its effect together
// with the row: see [Complete].
package pgledger

import (
	"context"
	"errors"
	"fmt"
	neturl "net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/ledger"
)

// DefaultSchema is where the tables are, unless the URL names another.
const DefaultSchema = "pawl"

const (
	// patience is how long one call may take. An answer that never comes must
	// not keep a worker's renewals.
	patience = 15 * time.Second
	// connections is how many the ledger itself uses. Those of handlers are apart, or
	// handlers that wait with theirs would keep leases from being renewed.
	connections = 4
)

// Store is a [ledger.Store] in a PostgreSQL database.
type Store struct {
	place string // for people: no password
	name  string // of the schema
	sql   statements
	pool  *pgxpool.Pool
	// effects are the connections of handlers.
	effects *pgxpool.Pool
}

var (
	_ ledger.Store     = (*Store)(nil)
	_ ledger.Declarer  = (*Store)(nil)
	_ ledger.Registers = (*Store)(nil)
)

// Open opens the ledger that a URL names, and makes or upgrades its tables where
// the user may do so:
//
//	postgres://user:password@host:5432/database?schema=pawl&pool_max_conns=8
//
// Besides schema it takes what pgx takes, but for default_query_exec_mode, which
// must suit a pooler. pool_max_conns is for handlers; the ledger itself uses up to four
// connections more.
//
// A database that cannot serve is refused with an error that wraps
// [ledger.ErrUnusable] and says what to do.
func Open(ctx context.Context, url string) (*Store, error) {
	s, err := dial(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, s.identify, s.migrate, s.privileges); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenReadOnly opens the ledger that a URL names for reading: it neither makes tables
// nor upgrades them. Tables of another format than this Pawl's, or none, are refused
// with an error that wraps [ledger.ErrUnusable].
func OpenReadOnly(ctx context.Context, url string) (*Store, error) {
	s, err := dial(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, s.identify, s.current, s.readable); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// dial makes the pools, which connect when they are first used.
func dial(ctx context.Context, url string) (*Store, error) {
	own, err := config(url)
	if err != nil {
		return nil, err
	}
	c := own.ConnConfig
	s := &Store{name: DefaultSchema, place: fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)}
	if name := c.RuntimeParams["schema"]; name != "" {
		s.name = name
	}
	effects := own.Copy()
	own.MaxConns = connections
	for _, p := range []*pgxpool.Config{own, effects} {
		delete(p.ConnConfig.RuntimeParams, "schema")
	}
	s.sql = statementsIn(s.name)
	if s.pool, err = pgxpool.NewWithConfig(ctx, own); err == nil {
		s.effects, err = pgxpool.NewWithConfig(ctx, effects)
	}
	if err != nil {
		return nil, errors.Join(s.explainOpen(ctx, err), s.Close())
	}
	return s, nil
}

func config(url string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		const why = "the ledger's URL cannot be read: write postgres://user:password@host:5432/database, with %-escapes in the password"
		if _, torn := neturl.Parse(url); torn != nil {
			return nil, fmt.Errorf("%w: %s", ledger.ErrUnusable, why) // the reason would repeat part of the password
		}
		return nil, fmt.Errorf("%w: %s (%w)", ledger.ErrUnusable, why, err)
	}
	// Described once a connection, and never named: a pooler may send the next
	// statement to another server process.
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "pawl"
	}
	return c, nil
}

// Traits implements [ledger.Declarer]. Due rows come in no order: where there are
// more than are asked for, each caller gets a random run of the oldest, so that
// workers do not race for the same ones.
func (s *Store) Traits() ledger.Traits { return ledger.Traits{DueUnordered: true, Transactions: true} }

// Pool returns connections for handlers, to the same database. The store closes
// them.
func (s *Store) Pool() *pgxpool.Pool { return s.effects }

// Close closes all connections, when those that are in use have come back.
func (s *Store) Close() error {
	for _, p := range []*pgxpool.Pool{s.effects, s.pool} {
		if p != nil {
			p.Close()
		}
	}
	return nil
}

// String says where the ledger is, without secrets.
func (s *Store) String() string { return s.place + " schema " + s.name }

// call runs f within the patience of one call, and explains its error.
func (s *Store) call(ctx context.Context, what string, f func(ctx context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f(bounded); err != nil {
		return s.explain(ctx, what, err)
	}
	return nil
}

// in puts the schema's name into a statement.
func in(schema, sql string) string {
	return strings.ReplaceAll(sql, "{}", pgx.Identifier{schema}.Sanitize())
}
