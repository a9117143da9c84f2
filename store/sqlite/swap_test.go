package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/store"
)

func openTest(t *testing.T) *Store {
	t.Helper()
	s, err := open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"), 50*time.Millisecond, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func write(t *testing.T, s *Store, sql string) {
	t.Helper()
	w := <-s.writer
	defer func() { s.writer <- w }()
	if err := sqlitex.ExecuteScript(w.conn, sql, nil); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, s *Store) (n int) {
	t.Helper()
	for _, err := range s.Scan(t.Context(), store.Range{Space: "s"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestSwapDiskFull(t *testing.T) {
	s := openTest(t)
	write(t, s, "PRAGMA max_page_count = 20")
	_, err := s.Swap(t.Context(), records(500))
	if err == nil || !strings.Contains(err.Error(), "free some disk space") || errors.Is(err, store.ErrUnusable) {
		t.Fatalf("error %v, want an error that asks for disk space", err)
	}
	if n := count(t, s); n != 0 {
		t.Fatalf("%d rows are left of the batch", n)
	}
	write(t, s, "PRAGMA max_page_count = 100000")
	if _, err := s.Swap(t.Context(), records(500)); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s); n != 500 {
		t.Fatalf("%d rows, want 500", n)
	}
}

func TestSwapCommitFails(t *testing.T) {
	s := openTest(t)
	write(t, s, `
		CREATE TABLE parent (id INTEGER PRIMARY KEY);
		CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
		CREATE TRIGGER doom AFTER INSERT ON record BEGIN INSERT INTO child VALUES (1); END`)
	w := <-s.writer
	err := pragmas(w.conn, "foreign_keys = on") // checked at the commit
	s.writer <- w
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.Swap(t.Context(), records(3)); sqlite.ErrCode(err) != sqlite.ResultConstraintForeignKey || !errors.Is(err, store.ErrUnclear) {
		t.Fatalf("%+v, error %v, want that of the commit and ErrUnclear", out, err)
	}
	if n := count(t, s); n != 0 {
		t.Fatalf("%d rows are left of the batch", n)
	}
	write(t, s, "DROP TRIGGER doom")
	if _, err := s.Swap(t.Context(), records(3)); err != nil {
		t.Fatal(err)
	}
}

func TestSwapLocked(t *testing.T) {
	s := openTest(t)
	conn, err := sqlite.OpenConn(s.path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Swap(t.Context(), records(1))
	if !errors.Is(err, store.ErrThrottled) || !strings.Contains(err.Error(), "is locked by another process") || errors.Is(err, store.ErrUnusable) {
		t.Errorf("error %v, want ErrThrottled and a text about the lock", err)
	}

	s.wait = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := s.Swap(ctx, records(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}

	if n := count(t, s); n != 0 { // readers do not wait for writers
		t.Errorf("%d rows, want none", n)
	}
	err = nil
	if end(&err); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap(t.Context(), records(1)); err != nil {
		t.Fatal(err)
	}
}

func TestReadInterrupted(t *testing.T) {
	s := openTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	err := s.read(ctx, "count for ever", func(conn *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(conn, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", nil)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if n := count(t, s); n != 0 {
		t.Error(n)
	}
}

// A manual SQL statement could store such a nonce.
func TestNonceLength(t *testing.T) {
	s := openTest(t)
	if _, err := s.Swap(t.Context(), records(1)); err != nil {
		t.Fatal(err)
	}
	err := s.Write(t.Context(), func(conn *sqlite.Conn) error {
		return sqlitex.Execute(conn, "UPDATE record SET nonce = x'0102'", nil)
	})
	if sqlite.ErrCode(err) != sqlite.ResultConstraintCheck {
		t.Errorf("error %v, want that of the constraint", err)
	}
}

func TestPlans(t *testing.T) {
	s := openTest(t)
	const byName = "SEARCH record USING INDEX sqlite_autoindex_record_1 (space=? AND name"
	for sql, plan := range map[string]string{
		loadSQL: byName + "=?)", updateSQL: byName + "=?)", deleteSQL: byName + "=?)", putSQL: byName + "=?)",
		dueSQL:  "SEARCH record USING INDEX record_due (space=? AND (due,name)>(?,?) AND due<?)",
		scanSQL: byName + ">?)", newestSQL: byName + ">?)",
		scanToSQL: byName + ">? AND name<?)", newestToSQL: byName + ">? AND name<?)",
	} {
		var got []string
		err := s.read(t.Context(), "explain", func(conn *sqlite.Conn) error {
			return sqlitex.ExecuteTransient(conn, "EXPLAIN QUERY PLAN "+sql, &sqlitex.ExecOptions{
				Args: slices.Repeat([]any{0}, strings.Count(sql, "?")),
				ResultFunc: func(stmt *sqlite.Stmt) error {
					got = append(got, stmt.GetText("detail"))
					return nil
				},
			})
		})
		if err != nil || !slices.Equal(got, []string{plan}) {
			t.Errorf("%s\n got %q, error %v\nwant %q", sql, got, err, plan)
		}
	}
}

// The last page must take about as long as the first.
func TestDuePagesAtOneInstant(t *testing.T) {
	s := openTest(t)
	const n = 50_000
	write(t, s, fmt.Sprintf(`
		WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d - 1)
		INSERT INTO record SELECT CAST('s' AS BLOB), CAST(printf('%%08x', i * 2654435761 %% 4294967296) AS BLOB), randomblob(16), 1000, '' FROM n`, n))
	r := store.DueRange{Space: "s", Before: time.UnixMilli(1000), Limit: 1000}
	total, last := 0, ""
	for {
		page, err := s.Due(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, next := range page {
			if next.Name <= last {
				t.Fatalf("%q after %q", next.Name, last)
			}
			last = next.Name
		}
		if total += len(page); len(page) < r.Limit {
			break
		}
		r.After = store.Place{Due: page[len(page)-1].Due, Name: last}
	}
	if total != n {
		t.Errorf("%d records, want %d", total, n)
	}
}

func TestSettings(t *testing.T) {
	s := openTest(t)
	w := <-s.writer
	defer func() { s.writer <- w }()
	for query, want := range map[string]string{
		"PRAGMA synchronous": "2", "PRAGMA journal_mode": "wal", "PRAGMA application_id": "1348564844", "PRAGMA user_version": "3",
	} {
		if got, err := queryValue(w.conn, query, sqlitex.ResultText); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
}
