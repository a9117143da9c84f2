package sqliteledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/ledger"
)

// Load reads all rows in one transaction.
func (s *Store) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	var rows []ledger.Row
	err := s.read(ctx, "load", func(conn *sqlite.Conn) (err error) {
		defer sqlitex.Transaction(conn)(&err)
		stmt, err := conn.Prepare(loadSQL)
		if err != nil {
			return err
		}
		for _, k := range keys {
			row, err := loadRow(stmt, k)
			if err != nil {
				return err
			}
			if row != nil {
				rows = append(rows, *row)
			}
		}
		return nil
	})
	return rows, err
}

// Due reads the index of rows that are due some time.
func (s *Store) Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	var rows []ledger.Row
	err := s.read(ctx, "due", func(conn *sqlite.Conn) error {
		stmt, err := conn.Prepare(dueSQL)
		if err != nil {
			return err
		}
		stmt.BindBytes(1, []byte(pipeline))
		stmt.BindInt64(2, before.UnixMicro())
		stmt.BindInt64(3, int64(limit))
		rows, err = collect(stmt)
		return err
	})
	// The index knows microseconds; a row may know more, and one that cannot be
	// read is told of.
	rows = slices.DeleteFunc(rows, func(r ledger.Row) bool { return r.Due().After(before) })
	return rows, err
}

// read lends a connection to f. What it reads may settle whether a change has
// landed, so the file must be in its place, before and after. A new connection
// would open, or make, whatever lies there.
func (s *Store) read(ctx context.Context, what string, f func(*sqlite.Conn) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := s.inPlace(func() error {
		conn, err := s.reader.Take(ctx)
		if err != nil {
			return err
		}
		defer s.reader.Put(conn)
		return f(conn)
	})
	if err != nil {
		return s.explain(ctx, what, err)
	}
	return nil
}

// loadRow returns the row of a key, or nil. stmt is of loadSQL.
func loadRow(stmt *sqlite.Stmt, k ledger.RowKey) (*ledger.Row, error) {
	bindKey(stmt, 1, k)
	rows, err := collect(stmt)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// bindKey binds four parameters, beginning with first.
func bindKey(stmt *sqlite.Stmt, first int, k ledger.RowKey) {
	stmt.BindBytes(first, []byte(k.Pipeline))
	stmt.BindBytes(first+1, []byte(k.Bucket))
	stmt.BindBytes(first+2, []byte(k.Key))
	stmt.BindBytes(first+3, []byte(k.VersionID))
}

// collect runs a statement to its end and resets it.
func collect(stmt *sqlite.Stmt) (rows []ledger.Row, err error) {
	for {
		more, err := stmt.Step()
		if err != nil {
			return nil, err
		}
		if !more {
			return rows, stmt.Reset()
		}
		rows = append(rows, decode(stmt))
	}
}

// decode reads the row that stmt, which selects our columns, stands on.
func decode(stmt *sqlite.Stmt) ledger.Row {
	blob := func(col int) []byte {
		b := make([]byte, stmt.ColumnLen(col))
		stmt.ColumnBytes(col, b)
		return b
	}
	key := ledger.RowKey{
		Pipeline: string(blob(0)), Bucket: string(blob(1)), Key: string(blob(2)), VersionID: string(blob(3)),
	}
	var nonce ledger.Nonce
	if n := stmt.ColumnLen(4); n != len(nonce) {
		return ledger.UnreadableRow(key, nonce, fmt.Errorf("its nonce has %d bytes, want %d", n, len(nonce)))
	}
	stmt.ColumnBytes(4, nonce[:])
	return ledger.Decode(key, nonce, blob(5))
}
