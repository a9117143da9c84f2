// Package postgres stores records in PostgreSQL, for many machines. Its tables have their own
// schema.
//
// It keeps no session state and no named statements, so it works behind a pooler in transaction
// mode. Records can be part of the caller's own transaction: see [Store.In].
package postgres

import (
	"context"
	"errors"
	"fmt"
	neturl "net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/store"
)

// DefaultSchema is the schema if the URL names none.
const DefaultSchema = "pawl"

const (
	// callTimeout bounds one call, so that a hanging server does not delay lease renewals.
	callTimeout    = 15 * time.Second
	minConnections = 4
)

// Store is a [store.Store] in a PostgreSQL database.
type Store struct {
	address string // host, port and database, without the password
	schema  string
	sql     statements
	pool    *pgxpool.Pool
	// handlers is a separate pool, so that handlers do not delay lease renewals.
	handlers *pgxpool.Pool
}

var _ store.Store = (*Store)(nil)

// Open opens the store at a URL, and creates or upgrades its tables if the user may do so:
//
//	postgres://user:password@host:5432/database?schema=pawl&pool_max_conns=8
//
// All parameters of pgx are allowed except default_query_exec_mode. pool_max_conns limits each of
// two pools: the pool for handlers, and the store's own, with at least 4 connections.
//
// If the database cannot hold the store, the error wraps [store.ErrUnusable].
func Open(ctx context.Context, url string) (*Store, error) {
	return open(ctx, url, (*Store).identify, (*Store).migrate, (*Store).writable)
}

// OpenReadOnly opens the store at a URL and writes nothing. If the tables are missing or have
// another format, the error wraps [store.ErrUnusable].
func OpenReadOnly(ctx context.Context, url string) (*Store, error) {
	return open(ctx, url, (*Store).identify, (*Store).requireCurrentFormat, (*Store).readable)
}

func open(ctx context.Context, url string, steps ...func(*Store, context.Context) error) (*Store, error) {
	s, err := dial(ctx, url)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, step := range steps {
		if err := step(s, bounded); err != nil {
			return nil, errors.Join(s.explainOpen(ctx, err), s.Close())
		}
	}
	return s, nil
}

func dial(ctx context.Context, url string) (*Store, error) {
	own, err := parse(url)
	if err != nil {
		return nil, err
	}
	c := own.ConnConfig
	s := &Store{schema: DefaultSchema, address: fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)}
	if name := c.RuntimeParams["schema"]; name != "" {
		s.schema = name
	}
	delete(c.RuntimeParams, "schema")
	s.sql = statementsIn(s.schema)
	handlers := own.Copy()
	own.MaxConns = max(own.MaxConns, minConnections)
	if s.pool, err = pgxpool.NewWithConfig(ctx, own); err == nil {
		s.handlers, err = pgxpool.NewWithConfig(ctx, handlers)
	}
	if err != nil {
		return nil, errors.Join(s.explainOpen(ctx, err), s.Close())
	}
	return s, nil
}

func parse(url string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		const why = "invalid database URL: write postgres://user:password@host:5432/database, with %-escapes in the password"
		if _, invalid := neturl.Parse(url); invalid != nil {
			return nil, fmt.Errorf("%w: %s", store.ErrUnusable, why) // the parse error may contain the password
		}
		return nil, fmt.Errorf("%w: %s (%w)", store.ErrUnusable, why, err)
	}
	// Named statements would fail behind a pooler, which may use another server process for each.
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "pawl"
	}
	return c, nil
}

var traits = store.Traits{
	Transactions: true, Batch: 500, Swaps: 2, Apply: store.MaxApply, Body: store.MaxBody, Name: store.MaxName,
}

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits { return traits }

// Pool returns a pool for handlers, connected to the same database. The store closes it.
func (s *Store) Pool() *pgxpool.Pool { return s.handlers }

// Close waits for connections in use, and closes all connections.
func (s *Store) Close() error {
	for _, p := range []*pgxpool.Pool{s.handlers, s.pool} {
		if p != nil {
			p.Close()
		}
	}
	return nil
}

func (s *Store) String() string { return s.address + " schema " + s.schema }

func withSchema(schema, sql string) string {
	return strings.ReplaceAll(sql, "{}", pgx.Identifier{schema}.Sanitize())
}
