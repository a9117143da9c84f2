package sqliteledger

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/internal/rowjson"
	"github.com/pawlhq/pawl/ledger"
)

// Swap applies the whole batch in one transaction: there is one wait for the
// disk, however many changes there are.
//
// Rows are encoded before the transaction begins, because nobody else can write
// while it lasts. Each change is one statement that carries its own condition;
// only a refused one costs a read.
//
// That the file is in its place is looked at before anything is written, and
// once more before anybody is told that it was.
func (s *Store) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	bodies, err := rowjson.Encode(changes)
	if err != nil {
		return nil, err
	}
	var out []ledger.Outcome
	err = s.write(ctx, "swap", func(conn *sqlite.Conn) (err error) {
		out, err = apply(conn, changes, bodies)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// write lends the writing connection to f, whose changes are committed together
// or, with an error, rolled back. After an error of the commit itself nothing is
// known.
func (s *Store) write(ctx context.Context, what string, f func(*sqlite.Conn) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	conn, err := s.writer.Take(ctx)
	if err != nil {
		return s.explain(ctx, what, err)
	}
	defer s.writer.Put(conn)
	err = s.inPlace(func() (err error) {
		end, err := s.begin(ctx, conn)
		if err != nil {
			return err
		}
		defer end(&err)
		return f(conn)
	})
	if err != nil {
		return s.explain(ctx, what, err)
	}
	return nil
}

// apply makes the changes.
func apply(conn *sqlite.Conn, changes []ledger.Change, bodies []string) ([]ledger.Outcome, error) {
	w, err := newWriting(conn)
	if err != nil {
		return nil, err
	}
	out := make([]ledger.Outcome, len(changes))
	for i := range changes {
		c := &changes[i]
		if out[i].Applied, err = w.apply(c, bodies[i]); err != nil {
			return nil, err
		}
		if out[i].Applied {
			continue
		}
		if out[i].Current, err = loadRow(w.load, c.Key); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// begin waits for the write lock, which another process may hold. The waits of
// SQLite itself grow to 100 ms, in which a busy process takes the lock many
// times over.
func (s *Store) begin(ctx context.Context, conn *sqlite.Conn) (end func(*error), err error) {
	err = s.patiently(ctx, func() error {
		end, err = sqlitex.ImmediateTransaction(conn)
		return err
	})
	return end, err
}

// writing holds the statements of one transaction.
type writing struct {
	conn                         *sqlite.Conn
	insert, update, delete, load *sqlite.Stmt
}

func newWriting(conn *sqlite.Conn) (w *writing, err error) {
	w = &writing{conn: conn}
	for _, p := range []struct {
		stmt **sqlite.Stmt
		sql  string
	}{{&w.insert, insertSQL}, {&w.update, updateSQL}, {&w.delete, deleteSQL}, {&w.load, loadSQL}} {
		if *p.stmt, err = conn.Prepare(p.sql); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *writing) apply(c *ledger.Change, body string) (bool, error) {
	stmt := w.delete
	switch {
	case c.Row == nil:
		stmt.BindBytes(5, c.Expect[:])
	case c.Expect.IsZero():
		stmt = w.insert
		bindRow(stmt, c.Row, body)
	default:
		stmt = w.update
		bindRow(stmt, c.Row, body)
		stmt.BindBytes(8, c.Expect[:])
	}
	bindKey(stmt, 1, c.Key)
	if _, err := stmt.Step(); err != nil {
		return false, fmt.Errorf("row %s: %w", c.Key, err)
	}
	return w.conn.Changes() > 0, stmt.Reset()
}

func bindRow(stmt *sqlite.Stmt, r *ledger.Row, body string) {
	stmt.BindBytes(5, r.Nonce[:])
	if due := r.Due(); due.IsZero() {
		stmt.BindNull(6)
	} else {
		stmt.BindInt64(6, due.UnixMicro())
	}
	stmt.BindText(7, body)
}
