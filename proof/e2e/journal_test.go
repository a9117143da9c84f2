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

// Database triggers record the writes, so no worker can commit a row without an entry.
type journal struct {
	journalLog
	ended     bool
	histories map[ledger.RowKey]*rowHistory
	rows      int
	downgrade int // rows that the newer build wrote and then the older one
	unsettled atomic.Int64

	stop context.CancelFunc
	done chan error
}

type journalLog interface {
	drain() ([]journalRecord, error)
	// writable returns false while a process blocks the ledger's writes.
	writable() bool
	close() error
}

type sqliteLog struct {
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

// busyTimeout bounds how long a frozen worker may block the file in a transaction.
const busyTimeout = 2 * time.Minute

func newSQLiteJournal(t *testing.T, path string) *journal {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetBusyTimeout(busyTimeout)
	// The journal need not survive a power failure.
	err = sqlitex.ExecuteTransient(conn, "PRAGMA synchronous = off", nil)
	if err := errors.Join(err, sqlitex.ExecuteScript(conn, journalSQL, nil)); err != nil {
		t.Fatal(err)
	}
	return newJournal(t, &sqliteLog{path, conn})
}

func newJournal(t *testing.T, b journalLog) *journal {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	j := &journal{journalLog: b, histories: map[ledger.RowKey]*rowHistory{}, stop: cancel, done: make(chan error, 1)}
	go func() { j.done <- j.run(ctx) }()
	t.Cleanup(func() { _ = j.end() }) // if the test failed earlier
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

func (b *sqliteLog) writable() bool {
	conn, err := sqlite.OpenConn(b.path, sqlite.OpenReadWrite)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	conn.SetBusyTimeout(100 * time.Millisecond)
	end, err := sqlitex.ImmediateTransaction(conn)
	if err == nil {
		end(&err)
	}
	return err == nil
}

// When end is called, no process may write any more.
func (j *journal) end() error {
	if j.ended {
		return nil
	}
	j.ended = true
	j.stop()
	return errors.Join(<-j.done, j.close())
}

func (b *sqliteLog) close() error { return b.conn.Close() }

type journalRecord struct {
	key     ledger.RowKey
	deleted bool
	body    string
}

// read drains the log, so that it remains small.
func (j *journal) read() error {
	records, err := j.drain()
	if err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	for _, r := range records {
		if err := j.apply(&r); err != nil {
			return err
		}
	}
	return nil
}

func (b *sqliteLog) drain() (records []journalRecord, err error) {
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
			records = append(records, journalRecord{key: key, deleted: stmt.ColumnIsNull(2), body: text(2)})
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	return records, sqlitex.Execute(b.conn, "DELETE FROM journal", nil)
}

func (j *journal) apply(r *journalRecord) error {
	j.rows++
	l := j.histories[r.key]
	if l == nil {
		l = &rowHistory{key: r.key, output: r.key.Pipeline == pipelineUpper}
		j.histories[r.key] = l
	}
	if r.deleted {
		l.observeDeletion()
		return nil
	}
	row := ledger.Decode(r.key, ledger.Nonce{}, r.body)
	err := row.Unreadable
	if err != nil {
		return err
	}
	if l.row.Unknown != "" && strings.HasPrefix(r.body, `{"v":"`+ledger.RowFormat+`"`) {
		j.downgrade++
	}
	was := l.unsettled()
	l.observe(row)
	j.unsettled.Add(l.unsettled() - was)
	return nil
}

func (j *journal) violations() (bad []string) {
	for _, l := range j.histories {
		if len(l.violations) > 0 {
			bad = append(bad, strings.Join(l.violations, "\n")+"\n"+l.String())
		}
	}
	return bad
}
