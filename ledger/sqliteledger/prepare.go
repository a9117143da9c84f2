package sqliteledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitemigration"
	"zombiezen.com/go/sqlite/sqlitex"
)

// checkable is the size in bytes up to which a file is checked as a whole at
// Open. That takes about half a second.
const checkable = 256 << 20

// checkPlace finds what SQLite would describe as "unable to open".
func (s *Store) checkPlace() error {
	info, err := os.Stat(s.path)
	if err == nil {
		if info.Mode().IsRegular() {
			return nil
		}
		return s.refuse("is not a regular file: give the path of a file in that place", nil)
	}
	if s.readOnly {
		return s.refuse(`cannot be read: if it does not exist, "pawl run" or "pawl ledger migrate" makes it`, err)
	}
	folder := filepath.Dir(s.path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return s.refuse("cannot be made because its folder does not exist: make the folder first", err)
	}
	return nil // absent, or SQLite will say what is wrong
}

// prepareFile makes sure that the file is ours, whole, writable and of this
// format. Nothing is written before it is known to be ours, and whole.
func (s *Store) prepareFile(ctx context.Context) error {
	var conn *sqlite.Conn
	take := func() (err error) {
		conn, err = s.writer.Take(ctx)
		return err
	}
	if err := s.patiently(ctx, take); err != nil {
		return s.explainOpen(ctx, err)
	}
	defer s.writer.Put(conn)
	if err := s.remember(); err != nil {
		return s.explainOpen(ctx, err)
	}
	steps := []func(context.Context, *sqlite.Conn) error{s.identify, s.check, s.useWAL, s.migrate}
	if s.readOnly {
		steps = []func(context.Context, *sqlite.Conn) error{s.identify, s.current, s.check}
	}
	for _, step := range steps {
		if err := s.patiently(ctx, func() error { return step(ctx, conn) }); err != nil {
			return s.explainOpen(ctx, err)
		}
	}
	if err := s.rememberWAL(); err != nil {
		return s.explainOpen(ctx, err)
	}
	return nil
}

// identify refuses files of other applications and of formats to come. It asks
// in one transaction: another process may be making the file at this moment.
func (s *Store) identify(_ context.Context, conn *sqlite.Conn) (err error) {
	defer sqlitex.Transaction(conn)(&err)
	var id, version, tables int64
	for _, q := range []struct {
		answer *int64
		query  string
	}{
		{&id, "PRAGMA application_id"},
		{&version, "PRAGMA user_version"},
		{&tables, "SELECT count(*) FROM sqlite_schema"},
	} {
		if *q.answer, err = ask(conn, q.query, sqlitex.ResultInt64); err != nil {
			return err
		}
	}
	switch known := int64(len(schema.Migrations)); {
	case id == 0 && tables == 0:
		return nil // new
	case id != applicationID:
		return s.refuse("is a database of another application: give another path", nil)
	case version > known:
		why := fmt.Sprintf("has format %d, and this Pawl knows none above %d: upgrade Pawl, or give another path", version, known)
		return s.refuse(why, nil)
	}
	return nil
}

// current refuses a file without tables, and one of an older format.
func (s *Store) current(_ context.Context, conn *sqlite.Conn) error {
	version, err := ask(conn, "PRAGMA user_version", sqlitex.ResultInt)
	if err != nil || version == len(schema.Migrations) {
		return err
	}
	if version == 0 {
		return s.refuse(`has no tables yet: "pawl run" or "pawl ledger migrate" makes them`, nil)
	}
	return s.refuse(fmt.Sprintf(`has format %d, and this Pawl reads format %d: stop the workers of the older version, then run "pawl ledger migrate"`,
		version, len(schema.Migrations)), nil)
}

// useWAL switches to the write-ahead log, in which readers and the writer do
// not wait for each other. A file remembers it.
func (s *Store) useWAL(_ context.Context, conn *sqlite.Conn) error {
	mode, err := ask(conn, "PRAGMA journal_mode = wal", sqlitex.ResultText)
	if err == nil && mode != "wal" {
		return s.refuse("lies on a file system without shared memory: move it to a local disk", nil)
	}
	return err
}

func (s *Store) check(_ context.Context, conn *sqlite.Conn) error {
	if info, err := os.Stat(s.path); err != nil || info.Size() > checkable {
		return err
	}
	found, err := ask(conn, "PRAGMA quick_check(1)", sqlitex.ResultText)
	if err == nil && found != "ok" {
		return s.refuse(damaged, fmt.Errorf("quick_check: %s", strings.Join(strings.Fields(found), " ")))
	}
	return err
}

// migrate brings the file to this format. Where it has it already, it is enough
// to know that the file can be written: who has the write lock just now may keep
// it, for most who open a ledger only want to read.
func (s *Store) migrate(ctx context.Context, conn *sqlite.Conn) error {
	version, err := ask(conn, "PRAGMA user_version", sqlitex.ResultInt)
	if err != nil {
		return err
	}
	if version < len(schema.Migrations) {
		return sqlitemigration.Migrate(ctx, conn, schema)
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	switch {
	case sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy:
		return nil
	case err != nil:
		return err
	}
	err = pragmas(conn, fmt.Sprintf("application_id = %d", applicationID)) // as good a write as any
	undo := errors.New("undo")
	end(&undo)
	return err
}

// prepareWriter sets up a connection that writes. It never waits for a lock by
// itself, because patiently does that better.
func prepareWriter(conn *sqlite.Conn) error {
	conn.SetBusyTimeout(0)
	return pragmas(conn, "synchronous = full", "cache_size = -16384")
}

func prepareReader(conn *sqlite.Conn) error {
	return pragmas(conn, "query_only = on", "cache_size = -4096")
}

func pragmas(conn *sqlite.Conn, settings ...string) error {
	for _, setting := range settings {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+setting, nil); err != nil {
			return err
		}
	}
	return nil
}

// ask returns the one value that a query answers with.
func ask[T any](conn *sqlite.Conn, query string, result func(*sqlite.Stmt) (T, error)) (answer T, err error) {
	stmt, _, err := conn.PrepareTransient(query)
	if err != nil {
		return answer, err
	}
	answer, err = result(stmt)
	return answer, errors.Join(err, stmt.Finalize())
}

// patiently tries again while another process holds a lock that is in the way.
func (s *Store) patiently(ctx context.Context, try func() error) error {
	wait := &backoff.ExponentialBackOff{
		InitialInterval: 100 * time.Microsecond, MaxInterval: 2 * time.Millisecond,
		Multiplier: 1.5, RandomizationFactor: 0.5,
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := try()
		if err != nil && sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(s.wait))
	return err
}
