package sqliteledger

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/ledger"
)

// openTest opens a ledger whose patience with locks is short.
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

// write runs SQL on the store's own connection.
func write(t *testing.T, s *Store, sql string) {
	t.Helper()
	conn, err := s.writer.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.writer.Put(conn)
	if err := sqlitex.ExecuteScript(conn, sql, nil); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, s *Store) (n int) {
	t.Helper()
	for _, err := range s.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// A disk that runs full in the middle of a batch leaves nothing of it, and the
// store goes on when there is room again.
func TestSwapDiskFull(t *testing.T) {
	s := openTest(t)
	write(t, s, "PRAGMA max_page_count = 20")
	_, err := s.Swap(t.Context(), rows(t, 500))
	if err == nil || !strings.Contains(err.Error(), "make room on its disk") || errors.Is(err, ledger.ErrUnusable) {
		t.Fatalf("error %v, want one that asks for room", err)
	}
	if n := count(t, s); n != 0 {
		t.Fatalf("%d rows are left of the batch", n)
	}
	write(t, s, "PRAGMA max_page_count = 100000")
	if _, err := s.Swap(t.Context(), rows(t, 500)); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s); n != 500 {
		t.Fatalf("%d rows, want 500", n)
	}
}

// A commit that fails is an error, whatever the statements before it said.
func TestSwapCommitFails(t *testing.T) {
	s := openTest(t)
	write(t, s, `
		CREATE TABLE parent (id INTEGER PRIMARY KEY);
		CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
		CREATE TRIGGER doom AFTER INSERT ON ledger BEGIN INSERT INTO child VALUES (1); END`)
	conn, err := s.writer.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = pragmas(conn, "foreign_keys = on") // checked at commit
	s.writer.Put(conn)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.Swap(t.Context(), rows(t, 3)); sqlite.ErrCode(err) != sqlite.ResultConstraintForeignKey {
		t.Fatalf("%+v, error %v, want the commit's", out, err)
	}
	if n := count(t, s); n != 0 {
		t.Fatalf("%d rows are left of the batch", n)
	}
	write(t, s, "DROP TRIGGER doom")
	if _, err := s.Swap(t.Context(), rows(t, 3)); err != nil {
		t.Fatal(err)
	}
}

// Another process that does not let go of the file is an error in the end, and
// the caller need not wait for that.
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
	_, err = s.Swap(t.Context(), rows(t, 1))
	if sqlite.ErrCode(err) != sqlite.ResultBusy || !strings.Contains(err.Error(), "is locked by another process") || errors.Is(err, ledger.ErrUnusable) {
		t.Errorf("error %v, want one that speaks of a lock", err)
	}

	s.wait = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := s.Swap(ctx, rows(t, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}

	if n := count(t, s); n != 0 { // readers do not wait for writers
		t.Errorf("%d rows, want none", n)
	}
	err = nil
	if end(&err); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap(t.Context(), rows(t, 1)); err != nil {
		t.Fatal(err)
	}
}

// A long statement ends when the context does.
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

// A row that was broken by hand, or that a newer Pawl wrote, is named, and stands
// in the way of no other.
func TestBrokenRow(t *testing.T) {
	s := openTest(t)
	if _, err := s.Swap(t.Context(), rows(t, 2)); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"UPDATE ledger SET nonce = x'0102' WHERE key = CAST('000001' AS BLOB)",
		"UPDATE ledger SET nonce = zeroblob(16), row = '{\"want\"' WHERE key = CAST('000001' AS BLOB)",
	} {
		write(t, s, sql)
		changes := rows(t, 2)
		odd := func(r *ledger.Row) bool {
			return r != nil && r.RowKey == changes[1].Key && r.Unreadable != nil && strings.Contains(r.Unreadable.Error(), "s3://b/000001")
		}
		got, err := s.Load(t.Context(), []ledger.RowKey{changes[0].Key, changes[1].Key})
		if err != nil || len(got) != 2 || got[0].Unreadable != nil || !odd(&got[1]) {
			t.Errorf("Load: %+v, %v: want one that is unreadable", got, err)
		}
		out, err := s.Swap(t.Context(), changes)
		if err != nil || out[0].Current.Unreadable != nil || !odd(out[1].Current) {
			t.Errorf("Swap: %+v, %v: want to be refused by one that is unreadable", out, err)
		}
	}
}

// A row that cannot be written as JSON is an error before anything is written.
func TestUnencodableRow(t *testing.T) {
	s := openTest(t)
	changes := rows(t, 100)
	changes[90].Row.RetryAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := s.Swap(t.Context(), changes); err == nil || !strings.Contains(err.Error(), "s3://b/000090") {
		t.Errorf("error %v, want one that names the row", err)
	}
	if n := count(t, s); n != 0 {
		t.Errorf("%d rows are left of the batch", n)
	}
}

// No statement reads more than it must: each goes by an index, and none sorts.
func TestPlans(t *testing.T) {
	s := openTest(t)
	for _, test := range []struct{ sql, plan string }{
		{loadSQL, "SEARCH ledger USING INDEX sqlite_autoindex_ledger_1 (pipeline=? AND bucket=? AND key=? AND version=?)"},
		{updateSQL, "SEARCH ledger USING INDEX sqlite_autoindex_ledger_1 (pipeline=? AND bucket=? AND key=? AND version=?)"},
		{deleteSQL, "SEARCH ledger USING INDEX sqlite_autoindex_ledger_1 (pipeline=? AND bucket=? AND key=? AND version=?)"},
		{dueSQL, "SEARCH ledger USING INDEX ledger_due (pipeline=? AND due<?)"},
		{scanSQL, "SEARCH ledger USING INDEX sqlite_autoindex_ledger_1 ((pipeline,bucket,key,version)>(?,?,?,?))"},
		{scanToSQL, "SEARCH ledger USING INDEX sqlite_autoindex_ledger_1 ((pipeline,bucket,key,version)>(?,?,?,?) AND (pipeline,bucket,key,version)<(?,?,?,?))"},
	} {
		var got []string
		err := s.read(t.Context(), "explain", func(conn *sqlite.Conn) error {
			stmt, _, err := conn.PrepareTransient("EXPLAIN QUERY PLAN " + test.sql)
			if err != nil {
				return err
			}
			defer stmt.Finalize()
			for {
				if more, err := stmt.Step(); err != nil || !more {
					return err
				}
				got = append(got, stmt.GetText("detail"))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, []string{test.plan}) {
			t.Errorf("%s\n got %q\nwant %q", test.sql, got, test.plan)
		}
	}
}

// Every commit waits for the disk, and the file is written through the log.
func TestSettings(t *testing.T) {
	s := openTest(t)
	conn, err := s.writer.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.writer.Put(conn)
	for query, want := range map[string]string{
		"PRAGMA synchronous": "2", "PRAGMA journal_mode": "wal", "PRAGMA application_id": "1348564844", "PRAGMA user_version": "2",
	} {
		if got, err := ask(conn, query, sqlitex.ResultText); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
}
