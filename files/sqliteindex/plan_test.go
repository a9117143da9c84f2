package sqliteindex

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestPlan: every query goes by an index, to where its page begins, and sorts nothing.
func TestPlan(t *testing.T) {
	x, err := Open(t.Context(), filepath.Join(t.TempDir(), "files.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	conn, err := x.reader.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer x.reader.Put(conn)
	for query, want := range map[string]string{
		loadSQL: "(id=?)",
		keySQL:  "(id=?)",
		heldSQL: "(entity=? AND state=?)",
		listSQL: "(entity=? AND state=? AND id>?)",
		dueSQL:  "((look_at,id)>(?,?) AND look_at<?)",
		scanSQL: "(key>?)",
		usedSQL: "(entity=?)",
	} {
		var plan []string
		args := slices.Repeat([]any{0}, strings.Count(query, "?"))
		err := sqlitex.ExecuteTransient(conn, "EXPLAIN QUERY PLAN "+query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(s *sqlite.Stmt) error {
			plan = append(plan, s.ColumnText(3))
			return nil
		}})
		text := strings.Join(plan, "\n")
		if err != nil || !strings.Contains(text, want) || strings.Contains(text, "SCAN") || strings.Contains(text, "TEMP B-TREE") {
			t.Errorf("%s: %v: want a search by %s:\n%s", query, err, want, text)
		}
	}
}
