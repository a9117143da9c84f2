package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/pawlhq/pawl/store"
)

var (
	errNoTransaction = errors.New("sqlite: no transaction is open on the connection: begin one first, with BEGIN IMMEDIATE or Store.Write")
	errNoRecord      = errors.New("the record does not exist: Put replaces a record that Lock returned")
)

type tx struct {
	s    *Store
	conn *sqlite.Conn
}

// In returns a [store.Tx] for the open transaction of conn. conn may be the caller's own connection
// to the file.
func (s *Store) In(conn *sqlite.Conn) store.Tx { return tx{s, conn} }

// Lock only reads, because the transaction holds the only write lock.
func (t tx) Lock(ctx context.Context, k store.Key) (*store.Record, error) {
	stmt, err := t.prepare(ctx, loadSQL)
	if err != nil {
		return nil, err
	}
	r, _, err := find(stmt, k, nil)
	if err != nil {
		return nil, t.s.explain(ctx, "lock a record", nil, err)
	}
	return r, nil
}

func (t tx) Put(ctx context.Context, r store.Record) error {
	c := store.Change{Key: r.Key, Next: &r}
	if err := traits.Check(&c); err != nil {
		return err
	}
	stmt, err := t.prepare(ctx, putSQL)
	if err != nil {
		return err
	}
	bindKey(stmt, r.Key, nil)
	bindRecord(stmt, &r)
	if err := run(stmt); err != nil {
		return t.s.explain(ctx, "put a record", nil, err)
	}
	if t.conn.Changes() == 0 {
		return fmt.Errorf("sqlite: put record %q: %w", r.Name, errNoRecord)
	}
	return nil
}

func (t tx) prepare(ctx context.Context, sql string) (*sqlite.Stmt, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if t.conn.AutocommitEnabled() {
		return nil, errNoTransaction
	}
	stmt, err := t.conn.Prepare(sql)
	if err != nil {
		return nil, t.s.explain(ctx, "prepare a statement", nil, err)
	}
	return stmt, nil
}
