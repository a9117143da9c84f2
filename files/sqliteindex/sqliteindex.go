// Package sqliteindex keeps an index of files in one SQLite file, which several
// processes of one machine may share. What was answered for survives a power
// failure (WAL, synchronous=FULL).
package sqliteindex

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitemigration"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/files"
)

// lockWait is how long another process may keep the file locked before a call gives
// up.
const lockWait = 10 * time.Second

// Index is a [files.Index] in one file.
type Index struct {
	path           string
	flags          sqlite.OpenFlags
	writer, reader *sqlitex.Pool
}

var _ files.Index = (*Index)(nil)

// Open opens the index in the file at path, and makes the file if there is none.
func Open(ctx context.Context, path string) (*Index, error) {
	return open(ctx, path, sqlite.OpenReadWrite|sqlite.OpenCreate, (*Index).prepare)
}

// OpenExisting is Open of an index that is there already: it neither makes the file nor
// upgrades its tables, and refuses those of another format.
func OpenExisting(ctx context.Context, path string) (*Index, error) {
	return open(ctx, path, sqlite.OpenReadWrite, (*Index).current)
}

func open(ctx context.Context, path string, flags sqlite.OpenFlags, prepare func(*Index, context.Context) error) (_ *Index, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqliteindex: %w", err)
	}
	x := &Index{path: abs, flags: flags}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("sqliteindex: opening %s: %w", abs, err), x.Close())
		}
	}()
	if x.writer, err = x.pool(1); err != nil {
		return nil, err
	}
	if err := prepare(x, ctx); err != nil {
		return nil, err
	}
	x.reader, err = x.pool(4)
	return x, err
}

func (x *Index) pool(size int) (*sqlitex.Pool, error) {
	return sqlitex.NewPool(x.path, sqlitex.PoolOptions{
		Flags: x.flags, PoolSize: size,
		PrepareConn: func(conn *sqlite.Conn) error {
			conn.SetBusyTimeout(lockWait)
			return sqlitex.ExecuteTransient(conn, "PRAGMA synchronous = FULL", nil)
		},
	})
}

func (x *Index) prepare(ctx context.Context) error {
	conn, err := x.writer.Take(ctx)
	if err != nil {
		return err
	}
	defer x.writer.Put(conn)
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode = wal", nil); err != nil {
		return err
	}
	if err := sqlitemigration.Migrate(ctx, conn, schema); err != nil {
		return err
	}
	return complete(conn)
}

// current refuses a file of another format, or of another application.
func (x *Index) current(ctx context.Context) error {
	conn, err := x.writer.Take(ctx)
	if err != nil {
		return err
	}
	defer x.writer.Put(conn)
	var id int32
	var format int
	for query, answer := range map[string]func(*sqlite.Stmt) error{
		"PRAGMA application_id": func(s *sqlite.Stmt) error { id = s.ColumnInt32(0); return nil },
		"PRAGMA user_version":   func(s *sqlite.Stmt) error { format = s.ColumnInt(0); return nil },
	} {
		if err := sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: answer}); err != nil {
			return err
		}
	}
	switch known := len(schema.Migrations); {
	case id != schema.AppID:
		return errors.New("the file is no index of files")
	case format < known:
		return fmt.Errorf("it has format %d, and this Pawl works with format %d: stop the processes of the older version, then start \"pawl files serve\", which upgrades it", format, known)
	case format > known:
		return fmt.Errorf("it has format %d, and this Pawl knows none above %d: upgrade Pawl", format, known)
	}
	return complete(conn)
}

// complete refuses tables of format 1 from before its release, which do not count open
// uploads.
func complete(conn *sqlite.Conn) error {
	open, err := sqlitex.ResultInt(conn.Prep(openSQL))
	if err == nil && open == 0 {
		err = errors.New("a version before the first release made it, without the number of open uploads, and it cannot be upgraded: name a new file, start \"pawl files serve\", which makes it, and run \"pawl files rebuild\"")
	}
	return err
}

// Close closes the file.
func (x *Index) Close() error {
	var errs []error
	for _, p := range []*sqlitex.Pool{x.reader, x.writer} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// Apply implements [files.Index].
func (x *Index) Apply(ctx context.Context, c files.Change) (o files.Outcome, err error) {
	conn, err := x.writer.Take(ctx)
	if err != nil {
		return o, x.failed("writing to", err)
	}
	defer x.writer.Put(conn)
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return o, x.failed("writing to", err)
	}
	o, err = apply(conn, &c)
	end(&err)
	if err != nil {
		err = x.failed("writing to", err)
	}
	return o, err
}

// apply checks the conditions and writes, within a transaction. Where a condition
// does not hold it has written nothing.
func apply(conn *sqlite.Conn, c *files.Change) (o files.Outcome, err error) {
	next := &c.Next
	old, err := one(conn, loadSQL, next.ID)
	if err != nil {
		return o, err
	}
	if old == nil && c.Expect != (files.Nonce{}) || old != nil && old.Nonce != c.Expect {
		return files.Outcome{Result: files.Refused, Current: old}, nil
	}
	begins := old == nil && next.Idempotency != ""
	if begins {
		holder, err := one(conn, keySQL, next.Entity, next.Idempotency)
		if err != nil {
			return o, err
		}
		if holder != nil && holder.State != files.Expired {
			return files.Outcome{Result: files.KeyTaken, Current: holder}, nil
		}
	}
	if c.Add.Bytes > 0 || c.Add.Open > 0 {
		used, err := used(conn, next.Entity)
		if err != nil {
			return o, err
		}
		if o.Result = c.Check(used); o.Result != files.Applied {
			return o, nil
		}
	}
	return o, write(conn, c, begins)
}

func write(conn *sqlite.Conn, c *files.Change, begins bool) error {
	f := &c.Next
	if c.Add != (files.Usage{}) {
		if err := run(conn, quotaSQL, f.Entity, c.Add.Bytes, c.Add.Open); err != nil {
			return err
		}
	}
	if c.Drop {
		if err := run(conn, dropKeySQL, f.Entity, f.Idempotency, f.ID); err != nil {
			return err
		}
		return run(conn, dropSQL, f.ID)
	}
	if begins {
		if err := run(conn, takeKeySQL, f.Entity, f.Idempotency, f.ID); err != nil {
			return err
		}
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	var lookAt any
	if !f.LookAt.IsZero() {
		lookAt = f.LookAt.UnixMicro()
	}
	return run(conn, writeSQL, f.ID, f.Entity, f.Key, int(f.State), lookAt, f.Nonce[:], string(text))
}

// Load implements [files.Index].
func (x *Index) Load(ctx context.Context, id string) (files.File, error) {
	return x.first(ctx, loadSQL, id)
}

// ByIdempotency implements [files.Index].
func (x *Index) ByIdempotency(ctx context.Context, entity, key string) (files.File, error) {
	return x.first(ctx, keySQL, entity, key)
}

// List implements [files.Index].
func (x *Index) List(ctx context.Context, entity, after string, limit int) ([]files.File, error) {
	return x.query(ctx, listSQL, entity, after, limit)
}

// Held implements [files.Index].
func (x *Index) Held(ctx context.Context, entity string, limit int) ([]files.File, error) {
	return x.query(ctx, heldSQL, entity, limit)
}

// Due implements [files.Index].
func (x *Index) Due(ctx context.Context, before time.Time, after *files.File, limit int) ([]files.File, error) {
	var from files.File // before all
	if after != nil {
		from = *after
	}
	return x.query(ctx, dueSQL, before.UnixMicro(), from.LookAt.UnixMicro(), from.ID, limit)
}

// Used implements [files.Index].
func (x *Index) Used(ctx context.Context, entity string) (u files.Usage, err error) {
	err = x.read(ctx, func(conn *sqlite.Conn) (err error) {
		u, err = used(conn, entity)
		return err
	})
	return u, err
}

// Scan implements [files.Index].
func (x *Index) Scan(ctx context.Context, after string) iter.Seq2[files.File, error] {
	return files.ScanPages(after, func(after string, limit int) ([]files.File, error) { return x.query(ctx, scanSQL, after, limit) })
}

func (x *Index) first(ctx context.Context, sql string, args ...any) (files.File, error) {
	found, err := x.query(ctx, sql, args...)
	if err == nil && len(found) == 0 {
		err = files.ErrNotFound
	}
	if err != nil {
		return files.File{}, err
	}
	return found[0], nil
}

func (x *Index) query(ctx context.Context, sql string, args ...any) (found []files.File, err error) {
	err = x.read(ctx, func(conn *sqlite.Conn) (err error) {
		found, err = all(conn, sql, args...)
		return err
	})
	return found, err
}

func (x *Index) read(ctx context.Context, do func(*sqlite.Conn) error) error {
	conn, err := x.reader.Take(ctx)
	if err != nil {
		return x.failed("reading", err)
	}
	defer x.reader.Put(conn)
	if err := do(conn); err != nil {
		return x.failed("reading", err)
	}
	return nil
}

func (x *Index) failed(doing string, err error) error {
	return fmt.Errorf("sqliteindex: %s %s: %w", doing, x.path, err)
}
