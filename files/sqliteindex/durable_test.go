package sqliteindex

import (
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite/sqlitex"
)

// TestDurable: a row that was answered for survives a power failure. SQLite then needs
// synchronous=FULL (2) on each connection that writes, where its journal is a WAL.
func TestDurable(t *testing.T) {
	x, err := Open(t.Context(), filepath.Join(t.TempDir(), "files.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := x.writer.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer x.writer.Put(conn)
	level, err := sqlitex.ResultInt64(conn.Prep("PRAGMA synchronous"))
	if err != nil || level != 2 {
		t.Errorf("synchronous is %d, %v", level, err)
	}
	mode, err := sqlitex.ResultText(conn.Prep("PRAGMA journal_mode"))
	if err != nil || mode != "wal" {
		t.Errorf("the journal is %s, %v", mode, err)
	}
}
