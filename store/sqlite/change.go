package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/pawlhq/pawl/store"
)

type writer struct {
	conn                                      *sqlite.Conn
	begin, commit, rollback, save, undo, keep *sqlite.Stmt
	insert, update, remove, load              *sqlite.Stmt
	buf                                       []byte // scratch space of bindings
}

func (s *Store) prepareStatements(conn *sqlite.Conn) (err error) {
	w := <-s.writer
	defer func() { s.writer <- w }()
	for _, p := range []struct {
		stmt **sqlite.Stmt
		sql  string
	}{
		{&w.begin, "BEGIN IMMEDIATE"}, {&w.commit, "COMMIT"}, {&w.rollback, "ROLLBACK"},
		{&w.save, "SAVEPOINT apply"}, {&w.undo, "ROLLBACK TO apply"}, {&w.keep, "RELEASE apply"},
		{&w.insert, insertSQL}, {&w.update, updateSQL}, {&w.remove, deleteSQL}, {&w.load, loadSQL},
	} {
		if *p.stmt, err = conn.Prepare(p.sql); err != nil {
			return err
		}
	}
	return nil
}

func run(stmt *sqlite.Stmt) error {
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}

func (w *writer) rollbackIfOpen() error {
	if w.conn.AutocommitEnabled() {
		return nil
	}
	return run(w.rollback)
}

func (w *writer) execute(batch []*request) (err error) {
	for _, r := range batch {
		r.out = make([]store.Outcome, len(r.changes))
		if r.apply {
			err = w.apply(r)
		} else {
			err = w.swap(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) swap(r *request) error {
	for i := range r.changes {
		c, o := &r.changes[i], &r.out[i]
		if o.Err = traits.Check(c); o.Err != nil {
			continue
		}
		var err error
		if o.Applied, err = w.change(c); err != nil {
			return err
		}
		if o.Applied {
			continue
		}
		o.Refused = true
		if o.Current, err = w.current(c.Key); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) apply(r *request) error {
	if err := run(w.save); err != nil {
		return err
	}
	for i := range r.changes {
		applied, err := w.change(&r.changes[i])
		if err != nil {
			return err
		}
		if !applied {
			if err := run(w.undo); err != nil {
				return err
			}
			if err := w.refuse(r); err != nil {
				return err
			}
			return run(w.keep)
		}
	}
	for i := range r.out {
		r.out[i].Applied = true
	}
	return run(w.keep)
}

func (w *writer) refuse(r *request) error {
	for i := range r.changes {
		c := &r.changes[i]
		now, err := w.current(c.Key)
		switch {
		case err != nil:
			return err
		case now == nil && (!c.Expect.IsZero() || c.Next == nil), now != nil && now.Nonce != c.Expect:
			r.out[i] = store.Outcome{Refused: true, Current: now}
		}
	}
	return nil
}

func (w *writer) change(c *store.Change) (applied bool, err error) {
	stmt := w.remove
	switch {
	case c.Next == nil:
		stmt.BindBytes(3, c.Expect[:])
	case c.Expect.IsZero():
		stmt = w.insert
		bindRecord(stmt, c.Next)
	default:
		stmt = w.update
		bindRecord(stmt, c.Next)
		stmt.BindBytes(6, c.Expect[:])
	}
	w.buf = bindKey(stmt, c.Key, w.buf)
	if err := run(stmt); err != nil {
		return false, fmt.Errorf("record %q: %w", c.Key.Name, err)
	}
	return w.conn.Changes() > 0, nil
}

func (w *writer) current(k store.Key) (r *store.Record, err error) {
	r, w.buf, err = find(w.load, k, w.buf)
	return r, err
}

// bindKey reuses buf to save an allocation.
func bindKey(stmt *sqlite.Stmt, k store.Key, buf []byte) []byte {
	buf = append(buf[:0], k.Space...)
	stmt.BindBytes(1, buf)
	buf = append(buf[:0], k.Name...)
	stmt.BindBytes(2, buf)
	return buf
}

func bindRecord(stmt *sqlite.Stmt, r *store.Record) {
	stmt.BindBytes(3, r.Nonce[:])
	if r.Due.IsZero() {
		stmt.BindNull(4)
	} else {
		stmt.BindInt64(4, r.Due.UnixMilli())
	}
	stmt.BindText(5, r.Body)
}
