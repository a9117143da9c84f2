//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
)

// journal follows everything that is ever written to a ledger, row by row in the
// order of the commits. Triggers in the database write it down: the workers know
// nothing of it, and cannot commit a row without it.
type journal struct {
	book
	ended bool
	lives map[ledger.RowKey]*life
	rows  int
	busy  atomic.Int64 // rows that are not at rest

	stop context.CancelFunc
	done chan error
}

// book is where triggers write, in one kind of database.
type book interface {
	// take takes out what is there.
	take() ([]record, error)
	// writable reports that nobody holds up the others' writes for long.
	writable() bool
	close() error
}

// sqliteBook is in a ledger file.
type sqliteBook struct {
	path string
	conn *sqlite.Conn
}

const journalSQL = `
	CREATE TABLE journal (n INTEGER PRIMARY KEY, space, name, body);
	CREATE TRIGGER journal_insert AFTER INSERT ON record WHEN substr(new.space, 1, 4) = CAST('row/' AS BLOB) BEGIN
		INSERT INTO journal VALUES (NULL, new.space, new.name, new.body);
	END;
	CREATE TRIGGER journal_update AFTER UPDATE ON record WHEN substr(new.space, 1, 4) = CAST('row/' AS BLOB) BEGIN
		INSERT INTO journal VALUES (NULL, new.space, new.name, new.body);
	END;
	CREATE TRIGGER journal_delete AFTER DELETE ON record WHEN substr(old.space, 1, 4) = CAST('row/' AS BLOB) BEGIN
		INSERT INTO journal VALUES (NULL, old.space, old.name, NULL);
	END;`

// patience is how long a worker that was stopped in mid-transaction may keep the
// file to itself.
const patience = 20 * time.Second

// follow makes a journal in a ledger file, and keeps reading it.
func follow(t *testing.T, path string) *journal {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetBusyTimeout(patience)
	// What is lost with the power is of no use without the ledger.
	err = sqlitex.ExecuteTransient(conn, "PRAGMA synchronous = off", nil)
	if err := errors.Join(err, sqlitex.ExecuteScript(conn, journalSQL, nil)); err != nil {
		t.Fatal(err)
	}
	return read(t, &sqliteBook{path, conn})
}

// read keeps reading a book.
func read(t *testing.T, b book) *journal {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	j := &journal{book: b, lives: map[ledger.RowKey]*life{}, stop: cancel, done: make(chan error, 1)}
	go func() { j.done <- j.run(ctx) }()
	t.Cleanup(func() { _ = j.end() }) // where the test failed before
	return j
}

func (j *journal) run(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := j.read(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return j.read()
		case <-tick.C:
		}
	}
}

func (b *sqliteBook) writable() bool {
	conn, err := sqlite.OpenConn(b.path, sqlite.OpenReadWrite)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // nothing was written
	conn.SetBusyTimeout(100 * time.Millisecond)
	end, err := sqlitex.ImmediateTransaction(conn)
	if err == nil {
		end(&err)
	}
	return err == nil
}

// end reads the rest. Nobody may write any more.
func (j *journal) end() error {
	if j.ended {
		return nil
	}
	j.ended = true
	j.stop()
	return errors.Join(<-j.done, j.close())
}

func (b *sqliteBook) close() error { return b.conn.Close() }

// record is what a trigger wrote.
type record struct {
	key     ledger.RowKey
	deleted bool
	body    string
}

// read takes what is there out of the book, which so remains small.
func (j *journal) read() error {
	records, err := j.take()
	if err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	for _, r := range records {
		if err := j.written(&r); err != nil {
			return err
		}
	}
	return nil
}

func (b *sqliteBook) take() (records []record, err error) {
	end, err := sqlitex.ImmediateTransaction(b.conn)
	if err != nil {
		return nil, err
	}
	defer end(&err)
	err = sqlitex.Execute(b.conn, "SELECT space, name, body FROM journal ORDER BY n", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			text := func(col int) string {
				b := make([]byte, stmt.ColumnLen(col))
				stmt.ColumnBytes(col, b)
				return string(b)
			}
			key, err := ledger.ParseKey(store.Key{Space: text(0), Name: text(1)})
			records = append(records, record{key: key, deleted: stmt.ColumnIsNull(2), body: text(2)})
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	return records, sqlitex.Execute(b.conn, "DELETE FROM journal", nil)
}

func (j *journal) written(r *record) error {
	j.rows++
	l := j.lives[r.key]
	if l == nil {
		l = &life{key: r.key, output: r.key.Pipeline == pipelineUpper}
		j.lives[r.key] = l
	}
	if r.deleted {
		l.deleted()
		return nil
	}
	row := ledger.Decode(r.key, ledger.Nonce{}, r.body)
	err := row.Unreadable
	if err != nil {
		return err
	}
	was := l.busy()
	l.written(row)
	j.busy.Add(l.busy() - was)
	return nil
}

// wrong lists what went wrong in the ledger, with the whole story.
func (j *journal) wrong() (bad []string) {
	for _, l := range j.lives {
		if len(l.wrong) > 0 {
			bad = append(bad, strings.Join(l.wrong, "\n")+"\n"+l.String())
		}
	}
	return bad
}
