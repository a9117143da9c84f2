package sqliteindex_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/indextest"
	"github.com/pawlhq/pawl/files/sqliteindex"
)

func TestIndex(t *testing.T) {
	indextest.Run(t, func(t *testing.T) files.Index {
		x, err := sqliteindex.Open(t.Context(), filepath.Join(t.TempDir(), "files.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
		return x
	})
}

// TestBeforeRelease: an index of format 1 that does not count open uploads is refused.
func TestBeforeRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "files.db")
	x, err := sqliteindex.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteScript(conn, `DROP TABLE quota; CREATE TABLE quota (entity TEXT PRIMARY KEY, used INTEGER NOT NULL) STRICT, WITHOUT ROWID`, nil); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	for name, open := range map[string]func(context.Context, string) (*sqliteindex.Index, error){"Open": sqliteindex.Open, "OpenExisting": sqliteindex.OpenExisting} {
		if _, err := open(t.Context(), path); err == nil || !strings.Contains(err.Error(), "cannot be upgraded: name a new file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
