package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/ledger"
	pawlsqlite "github.com/pawlhq/pawl/store/sqlite"
)

// A handler whose effect is a row in the ledger's own SQLite file completes its task in the same
// transaction. It does all other work before, because the transaction holds the only write lock. An error
// after the commit causes no second attempt.
func Example_complete() {
	ctx, dir := context.Background(), mustTempDir()
	defer os.RemoveAll(dir)
	records, err := pawlsqlite.Open(ctx, filepath.Join(dir, "pawl.db"))
	must(err)
	defer records.Close()
	must(records.Write(ctx, func(conn *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(conn, "CREATE TABLE loaded (object TEXT)", nil)
	}))
	load := func(ctx context.Context, t *pawl.Task) error {
		err := records.Write(ctx, func(conn *sqlite.Conn) error {
			insert := &sqlitex.ExecOptions{Args: []any{t.Object.String()}}
			if err := sqlitex.Execute(conn, "INSERT INTO loaded VALUES (?)", insert); err != nil {
				return err
			}
			return ledger.Complete(ctx, records.In(conn), t)
		})
		return errors.Join(err, errors.New("the answer was lost")) // does not matter after the commit
	}
	m := &message{payload: notification}
	p, err := pawl.New(pawl.Config{
		Ledger: records, Sources: []pawl.Source{m}, Retry: pawl.Retry{Base: time.Millisecond},
		Pipelines: []pawl.Pipeline{{
			Name: "load", Match: pawl.Match{Bucket: "notes"}, Order: pawl.EventOrder, Transactional: true, Handler: pawl.HandlerFunc(load),
		}},
	})
	must(err)
	must(p.Run(ctx))
	must(records.Write(ctx, func(conn *sqlite.Conn) error {
		return sqlitex.Execute(conn, "SELECT object FROM loaded", &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
			fmt.Println("loaded", row.ColumnText(0))
			return nil
		}})
	}))
	fmt.Println("completed", p.Stats().Completed)
	// Output:
	// loaded s3://notes/hello.txt
	// completed 1
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func mustTempDir() string {
	dir, err := os.MkdirTemp("", "pawl")
	must(err)
	return dir
}
