package sqlite

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
	"zombiezen.com/go/sqlite/sqlitex"
)

// A complete check of a file of this size, in bytes, takes half a second.
const maxCheckedSize = 256 << 20

// SQLite would only report "unable to open".
func (s *Store) checkPath() error {
	info, err := os.Stat(s.path)
	if err == nil {
		if info.Mode().IsRegular() {
			return nil
		}
		return s.refuse("is not a regular file: give the path of a file", nil)
	}
	if s.readOnly {
		return s.refuse("cannot be read: give the path of an existing file, or start the program that writes it first", err)
	}
	folder := filepath.Dir(s.path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return s.refuse("cannot be created because its folder does not exist: create the folder first", err)
	}
	return nil // if SQLite cannot create it, the error has the reason
}

// prepareFile writes nothing before the file has passed the checks.
func (s *Store) prepareFile(ctx context.Context, conn *sqlite.Conn) error {
	prepare := prepareWriter
	if s.readOnly {
		prepare = prepareReader
	}
	step := func(f func(*sqlite.Conn) error) error {
		return s.retryBusy(ctx, time.Now(), func() error { return f(conn) })
	}
	conn.SetInterrupt(ctx.Done())
	defer conn.SetInterrupt(nil)
	if err := step(prepare); err != nil {
		return s.explainOpen(ctx, err)
	}
	if err := s.recordIdentity(); err != nil {
		return s.explainOpen(ctx, err)
	}
	steps := []func(*sqlite.Conn) error{s.identify, s.check, s.useWAL, s.makeTables, s.prepareStatements}
	if s.readOnly {
		steps = []func(*sqlite.Conn) error{s.identify, s.check}
	}
	for _, f := range steps {
		if err := step(f); err != nil {
			return s.explainOpen(ctx, err)
		}
	}
	if err := s.recordWALIdentity(); err != nil {
		return s.explainOpen(ctx, err)
	}
	return nil
}

// identify reads in one transaction, because another process may be creating the file.
func (s *Store) identify(conn *sqlite.Conn) (err error) {
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
		if *q.answer, err = queryValue(conn, q.query, sqlitex.ResultInt64); err != nil {
			return err
		}
	}
	switch {
	case id == 0 && tables == 0 && s.readOnly:
		return s.refuse("has no tables yet: start the program that writes it first", nil)
	case id == 0 && tables == 0:
		return nil // new
	case id == filesID:
		return s.refuse(`is a file index of an earlier Pawl, which this version cannot read: use another path, then fill it with "pawl files rebuild" (docs/UPGRADING.md)`, nil)
	case id != applicationID:
		return s.refuse("is a database of another application: give another path", nil)
	case version < format:
		return s.refuse(`is a ledger of an earlier Pawl, which this version cannot read: give another path, then audit the pipelines, and run "pawl archive recover" for archives (docs/UPGRADING.md)`, nil)
	case version > format:
		return s.refuse(fmt.Sprintf("has format %d, and this Pawl reads format %d: upgrade Pawl, or give another path", version, format), nil)
	}
	return nil
}

// With the write-ahead log, readers and the writer do not wait for each other. The setting is
// persistent.
func (s *Store) useWAL(conn *sqlite.Conn) error {
	mode, err := queryValue(conn, "PRAGMA journal_mode = wal", sqlitex.ResultText)
	if err == nil && mode != "wal" {
		return s.refuse("is on a file system without shared memory: move it to a local disk", nil)
	}
	return err
}

func (s *Store) check(conn *sqlite.Conn) error {
	if info, err := os.Stat(s.path); err != nil || info.Size() > maxCheckedSize {
		return err
	}
	found, err := queryValue(conn, "PRAGMA quick_check(1)", sqlitex.ResultText)
	if err == nil && found != "ok" {
		return s.refuse(damaged, fmt.Errorf("quick_check: %s", strings.Join(strings.Fields(found), " ")))
	}
	return err
}

// In an existing file, makeTables only checks that it is writable, without waiting for another
// process's lock.
func (s *Store) makeTables(conn *sqlite.Conn) (err error) {
	version, err := queryValue(conn, "PRAGMA user_version", sqlitex.ResultInt)
	if err != nil {
		return err
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	switch {
	case version == format && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy:
		return nil
	case err != nil:
		return err
	}
	undo := errors.New("undo")
	// Another process may have created the tables.
	version, err = queryValue(conn, "PRAGMA user_version", sqlitex.ResultInt)
	if err == nil {
		err = pragmas(conn, fmt.Sprintf("application_id = %d", applicationID), fmt.Sprintf("user_version = %d", format))
	}
	switch {
	case err == nil && version == format:
		end(&undo) // the write has shown that the file is writable
		return nil
	case err == nil:
		err = sqlitex.ExecuteScript(conn, schema, nil)
	}
	end(&err)
	return err
}

// retryBusy waits for locks instead of SQLite.
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

func queryValue[T any](conn *sqlite.Conn, query string, result func(*sqlite.Stmt) (T, error)) (answer T, err error) {
	stmt, _, err := conn.PrepareTransient(query)
	if err != nil {
		return answer, err
	}
	answer, err = result(stmt)
	return answer, errors.Join(err, stmt.Finalize())
}

// SQLite's own waits grow to 100 ms, in which a busy process acquires the lock many times.
func (s *Store) retryBusy(ctx context.Context, start time.Time, try func() error) error {
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
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(max(1, s.wait-time.Since(start))))
	return err
}
