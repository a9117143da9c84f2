package sqlite

import (
	"context"
	"iter"
	"math"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/store"
)

// Load implements [store.Store].
func (s *Store) Load(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	var found []store.Record
	err := s.read(ctx, "load", func(conn *sqlite.Conn) (err error) {
		defer sqlitex.Transaction(conn)(&err)
		stmt, err := conn.Prepare(loadSQL)
		if err != nil {
			return err
		}
		var buf []byte
		for _, k := range keys {
			var r *store.Record
			if r, buf, err = find(stmt, k, buf); err != nil {
				return err
			}
			if r != nil {
				found = append(found, *r)
			}
		}
		return nil
	})
	return found, err
}

// Due implements [store.Store].
func (s *Store) Due(ctx context.Context, r store.DueRange) ([]store.Record, error) {
	return s.query(ctx, "due", dueSQL, r.Space, func(stmt *sqlite.Stmt) {
		after := int64(math.MinInt64)
		if !r.After.Due.IsZero() {
			after = r.After.Due.UnixMilli()
		}
		stmt.BindInt64(2, after)
		stmt.BindBytes(3, []byte(r.After.Name))
		stmt.BindInt64(4, r.Before.UnixMilli())
		stmt.BindInt64(5, int64(r.Limit))
		stmt.BindInt64(6, int64(r.Skip))
	})
}

// A scan holds no connection between pages, so that it does not block checkpoints of the log.
const page = 256

// Scan implements [store.Store].
func (s *Store) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Record, error] {
	return store.ScanPages(r, page, func(r store.Range) ([]store.Record, error) {
		sql := scanSQL
		switch {
		case r.Newest && r.Before != "":
			sql = newestToSQL
		case r.Newest:
			sql = newestSQL
		case r.Before != "":
			sql = scanToSQL
		}
		return s.query(ctx, "scan", sql, r.Space, func(stmt *sqlite.Stmt) {
			stmt.BindBytes(2, []byte(r.After))
			stmt.BindInt64(3, int64(r.Limit))
			if r.Before != "" {
				stmt.BindBytes(4, []byte(r.Before))
			}
		})
	})
}

func (s *Store) query(ctx context.Context, what, sql, space string, bind func(*sqlite.Stmt)) (found []store.Record, err error) {
	err = s.read(ctx, what, func(conn *sqlite.Conn) error {
		stmt, err := conn.Prepare(sql)
		if err != nil {
			return err
		}
		stmt.BindBytes(1, []byte(space))
		bind(stmt)
		for {
			more, err := stmt.Step()
			if err != nil {
				return err
			}
			if !more {
				return stmt.Reset()
			}
			found = append(found, decode(stmt, store.Key{Space: space, Name: stmt.ColumnText(3)}))
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// The result may show whether a change landed, so read checks the file's path. A new connection
// would open or create any file at the path.
func (s *Store) read(ctx context.Context, what string, f func(*sqlite.Conn) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := s.checkedCall(func() error {
		conn, err := s.reader.Take(ctx)
		if err != nil {
			return err
		}
		defer s.reader.Put(conn)
		return f(conn)
	})
	if err != nil {
		return s.explain(ctx, what, nil, err)
	}
	return nil
}

// stmt must be prepared from loadSQL.
func find(stmt *sqlite.Stmt, k store.Key, buf []byte) (*store.Record, []byte, error) {
	buf = bindKey(stmt, k, buf)
	more, err := stmt.Step()
	if err != nil {
		return nil, buf, err
	}
	if !more {
		return nil, buf, stmt.Reset()
	}
	r := decode(stmt, k)
	return &r, buf, stmt.Reset()
}

func decode(stmt *sqlite.Stmt, k store.Key) store.Record {
	r := store.Record{Key: k, Body: stmt.ColumnText(2)}
	copy(r.Nonce[:], stmt.ColumnText(0))
	if !stmt.ColumnIsNull(1) {
		r.Due = time.UnixMilli(stmt.ColumnInt64(1)).UTC()
	}
	return r
}
