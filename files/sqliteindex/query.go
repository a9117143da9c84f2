package sqliteindex

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/files"
)

// all returns the files that a query selects.
func all(conn *sqlite.Conn, sql string, args ...any) (found []files.File, err error) {
	err = sqlitex.Execute(conn, sql, &sqlitex.ExecOptions{Args: args, ResultFunc: func(stmt *sqlite.Stmt) error {
		var f files.File
		if err := json.Unmarshal([]byte(stmt.ColumnText(0)), &f); err != nil {
			return fmt.Errorf("a row cannot be read: %w", err)
		}
		found = append(found, f)
		return nil
	}})
	return found, err
}

// one returns the file that a query selects, or nil.
func one(conn *sqlite.Conn, sql string, args ...any) (*files.File, error) {
	found, err := all(conn, sql, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func used(conn *sqlite.Conn, entity string) (u files.Usage, err error) {
	err = sqlitex.Execute(conn, usedSQL, &sqlitex.ExecOptions{Args: []any{entity}, ResultFunc: func(stmt *sqlite.Stmt) error {
		u = files.Usage{Bytes: stmt.ColumnInt64(0), Open: stmt.ColumnInt64(1)}
		return nil
	}})
	return u, err
}

func run(conn *sqlite.Conn, sql string, args ...any) error {
	return sqlitex.Execute(conn, sql, &sqlitex.ExecOptions{Args: args})
}
