// Package sqlite stores records in one SQLite file, the default store. Several processes of one
// machine may use the file.
//
// The file must be on a local disk, because the locks and the shared memory of SQLite do not work
// over a network. The files with the suffixes -wal and -shm belong to it.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/store"
)

const lockWait = 10 * time.Second

const readers = 4

// Store is a [store.Store] in one file.
type Store struct {
	path     string
	file     os.FileInfo // the file that was opened
	wal      os.FileInfo
	walPath  string
	wait     time.Duration
	readOnly bool

	reader *sqlitex.Pool
	writer chan *writer // holds the writer while no call uses it

	mu    sync.Mutex
	queue []*request // not yet part of a transaction
}

var _ store.Store = (*Store)(nil)

var traits = store.Traits{
	Local: true, Transactions: true, Batch: 1000, Swaps: 2, Apply: store.MaxApply, Body: store.MaxBody, Name: store.MaxName,
}

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits { return traits }

// Open opens the store in the file at path, and creates a missing file, but not its folder.
//
// It returns an error that wraps [store.ErrUnusable] if the file is unsuitable, or locked for
// longer than 10 seconds. Files above 256 MiB are not checked for damage.
//
// Calls return [store.ErrUnusable] when the file or its log is no longer at path, because changes
// in a deleted file are lost.
func Open(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, lockWait, false)
}

// OpenReadOnly opens the store for reading, and creates nothing. If there is no file, the error
// also wraps [fs.ErrNotExist]. Changes return [store.ErrUnusable].
func OpenReadOnly(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, lockWait, true)
}

func open(ctx context.Context, path string, wait time.Duration, readOnly bool) (_ *Store, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s := &Store{path: abs, wait: wait, readOnly: readOnly, writer: make(chan *writer, 1)}
	if err := s.checkPath(); err != nil {
		return nil, err
	}
	conn, err := sqlite.OpenConn(s.path, s.flags())
	if err != nil {
		return nil, s.explainOpen(ctx, err)
	}
	s.writer <- &writer{conn: conn}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.prepareFile(ctx, conn); err != nil {
		return nil, err
	}
	s.reader, err = sqlitex.NewPool(s.path, sqlitex.PoolOptions{Flags: s.flags(), PoolSize: readers, PrepareConn: prepareReader})
	if err != nil {
		return nil, s.explainOpen(ctx, err)
	}
	return s, nil
}

// prepareFile sets WAL mode. A reader also opens the file for writing, because the last connection
// that closes moves the log into the file.
func (s *Store) flags() sqlite.OpenFlags {
	if s.readOnly {
		return sqlite.OpenReadWrite
	}
	return sqlite.OpenReadWrite | sqlite.OpenCreate
}

// Close closes the file. The last process that closes it moves the -wal file into it.
func (s *Store) Close() error {
	w := <-s.writer
	var err error
	if s.reader != nil {
		err = s.reader.Close()
	}
	if err := errors.Join(err, w.conn.Close()); err != nil {
		return fmt.Errorf("sqlite: close %s: %w", s.path, err)
	}
	return nil
}
