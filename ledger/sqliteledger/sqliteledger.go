// Package sqliteledger keeps a ledger in one SQLite file. It is the default:
// no server, safe for several processes of one machine, and a row that was
// answered for survives a power failure (WAL, synchronous=FULL).
//
// The file must lie on a local disk, for SQLite's locks and shared memory do
// not work over a network. Its -wal and -shm companions belong to it.
package sqliteledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/ledger"
)

// lockWait is how long another process may keep the file locked before a call
// gives up.
const lockWait = 10 * time.Second

// readers is how many connections serve Load, Due and Scan. SQLite writes with
// one at a time in any case.
const readers = 4

// Store is a [ledger.Store] in one file.
type Store struct {
	path    string
	file    os.FileInfo // of the file as it was opened
	wal     os.FileInfo // of its log
	walPath string
	wait    time.Duration
	writer  *sqlitex.Pool
	reader  *sqlitex.Pool

	readOnly bool
}

var (
	_ ledger.Store     = (*Store)(nil)
	_ ledger.Registers = (*Store)(nil)
)

// Open opens the ledger in the file at path, and makes the file if there is
// none. Its folder must exist.
//
// A file that cannot serve is refused with an error that wraps
// [ledger.ErrUnusable] and says what to do: one that is read-only, locked for
// longer than 10 seconds, damaged, of another application or of a newer Pawl.
// Up to 256 MiB are checked for damage as a whole; of a larger file only the
// parts needed first are, and the call that meets damage later reports it.
//
// Every call makes sure that the file and its log still lie at path, for what is
// written to one that was deleted is gone when the process ends. Where it does not, the
// call's error wraps [ledger.ErrUnusable].
func Open(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, lockWait, false)
}

// OpenReadOnly opens the ledger in the file at path for reading. It makes no file and
// no tables, and does not upgrade them. A file of another format than this Pawl's is
// refused with an error that wraps [ledger.ErrUnusable]. If there is no file, the error
// wraps [fs.ErrNotExist] as well. Writes fail.
func OpenReadOnly(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, lockWait, true)
}

func open(ctx context.Context, path string, wait time.Duration, readOnly bool) (_ *Store, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqliteledger: %w", err)
	}
	s := &Store{path: abs, wait: wait, readOnly: readOnly}
	if err := s.checkPlace(); err != nil {
		return nil, err
	}
	prepare := prepareWriter
	if readOnly {
		prepare = prepareReader
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.writer, err = s.pool(1, prepare); err != nil {
		return nil, s.explainOpen(ctx, err)
	}
	if err := s.prepareFile(ctx); err != nil {
		return nil, err
	}
	if s.reader, err = s.pool(readers, prepareReader); err != nil {
		return nil, s.explainOpen(ctx, err)
	}
	return s, nil
}

// pool leaves WAL mode to prepareFile, and does not take the path for a URI.
func (s *Store) pool(size int, prepare sqlitex.ConnPrepareFunc) (*sqlitex.Pool, error) {
	flags := sqlite.OpenReadWrite // a reader also folds in the log, if it closes the file last
	if !s.readOnly {
		flags |= sqlite.OpenCreate
	}
	return sqlitex.NewPool(s.path, sqlitex.PoolOptions{
		Flags:       flags,
		PoolSize:    size,
		PrepareConn: prepare,
	})
}

// Close closes the file. The last process to do so folds the -wal file in.
func (s *Store) Close() error {
	var errs []error
	for _, p := range []*sqlitex.Pool{s.reader, s.writer} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sqliteledger: close %s: %w", s.path, err)
	}
	return nil
}
