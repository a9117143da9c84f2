// Package loadaction loads files into a table of the ledger's PostgreSQL database, exactly once.
package loadaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
)

// Config configures a handler. Pool, Complete, Table and Format are required.
type Config struct {
	// Pool connects to the ledger's database. Its maximum number of connections limits the number
	// of concurrent loads.
	Pool *pgxpool.Pool
	// Complete completes a task in a transaction, like ledger.Complete.
	Complete func(ctx context.Context, tx pgx.Tx, t *pawl.Task) error
	// Table is the table's name, with or without its schema: "exports", "raw.exports".
	Table string
	// Format is csv, ndjson or parquet.
	Format string
	// Source is the text column for the object's URL; default _source.
	Source string
	// MaxBytes is the maximum size of a file, uncompressed; default 1 GiB.
	MaxBytes int64
	// MaxLine is the maximum size of a line or a CSV record, in bytes; default 1 MiB.
	MaxLine int
	Logger  *slog.Logger // default slog.Default()
}

type loader struct {
	Config
	table  pgx.Identifier
	target string // full name of the table in the database
}

// New returns a handler that replaces the rows of an object's previous version by the rows of its
// current version, and completes the task in the same transaction. If the object was removed, it
// only deletes the rows. The pipeline must be transactional.
//
// New returns an error if the table is missing or has no text column for the source. It logs a
// warning if that column has no index.
func New(ctx context.Context, cfg Config) (pawl.Handler, error) {
	l := &loader{Config: cfg, table: strings.Split(cfg.Table, ".")}
	if l.Source == "" {
		l.Source = "_source"
	}
	if l.MaxBytes == 0 {
		l.MaxBytes = 1 << 30
	}
	if l.MaxLine == 0 {
		l.MaxLine = 1 << 20
	}
	if l.Logger == nil {
		l.Logger = slog.Default()
	}
	switch {
	case l.MaxBytes < 0 || l.MaxLine < 0:
		return nil, errors.New("load: a bound is negative")
	case formats[l.Format] == nil:
		return nil, fmt.Errorf("load: format %s is not known: want csv, ndjson or parquet", event.Quote(l.Format))
	}
	if err := l.checkTable(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// formats maps each format to the function that reads the beginning of a file.
var formats = map[string]func(*loader, io.Reader) (*content, error){
	"csv": (*loader).csv, "ndjson": (*loader).ndjson, "parquet": (*loader).parquet,
}

// content is a file whose beginning has been read.
type content struct {
	names   []string // of the columns, from the beginning of the file
	where   string   // position of the names, for errors
	byName  bool     // each row names its columns, so the beginning need not name all of them
	options string   // options of COPY
	line    string   // name of a line of COPY in errors: "line" or "row"
	write   func(w io.Writer, to *target) error
	close   func()
}

// target is the destination of a file's rows.
type target struct {
	source  string // first value of each row
	table   *table
	columns []column // columns of the other values
}

// Concurrency implements [pawl.Limited].
func (l *loader) Concurrency() int { return int(l.Pool.Config().MaxConns) }

// Target implements [pawl.Replacer].
func (l *loader) Target() string { return "the table " + l.target }

// Handle implements [pawl.Handler].
//
// It acquires a connection before it opens the object. An attempt that waits for a connection
// therefore has neither an open stream, which the store would close, nor a temporary file. It
// begins the transaction after the beginning of the file has arrived.
func (l *loader) Handle(ctx context.Context, t *pawl.Task) error {
	conn, err := l.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("load %s: %w", t.Object, l.explain(err, nil))
	}
	defer conn.Release()
	var c *content
	if t.Kind == event.Created {
		body, err := t.Open(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }() // nothing was written
		in, closed, err := decompress(body, l.MaxBytes)
		if err != nil {
			return fmt.Errorf("load %s: %w", t.Object, err)
		}
		defer closed()
		if c, err = formats[l.Format](l, in); err != nil {
			return fmt.Errorf("load %s: %w", t.Object, err)
		}
		if c.close != nil {
			defer c.close()
		}
	}
	if err := l.replace(ctx, conn, t, c); err != nil {
		return fmt.Errorf("load %s: %w", t.Object, err)
	}
	return nil
}

// settingsSQL limits how long a connection waits for rows that another session has locked, and
// how long the server keeps rows locked for a worker whose machine has failed.
const settingsSQL = `SELECT set_config('lock_timeout', '5s', true), set_config('tcp_keepalives_idle', '30', true),
	set_config('tcp_keepalives_interval', '10', true), set_config('tcp_keepalives_count', '3', true)`

// replace replaces the rows of the object by those of c, or by none if c is nil.
//
// The isolation level is read committed, because each renewal of the lease changes the object's
// row in the ledger.
func (l *loader) replace(ctx context.Context, conn *pgxpool.Conn, t *pawl.Task, c *content) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return l.explain(err, c)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit, Rollback does nothing
	to := &target{source: "s3://" + t.Object.Bucket + "/" + t.Object.Key}
	if to.table, err = l.remove(ctx, tx, to.source); err != nil {
		return l.explain(err, c)
	}
	if c != nil {
		if to.columns, err = to.table.columnsFor(c); err != nil {
			return err
		}
		if err := l.copy(ctx, tx, c, to); err != nil {
			return err
		}
	}
	if err := l.Complete(ctx, tx, t); err != nil {
		return err
	}
	return l.explain(tx.Commit(ctx), c)
}

// remove deletes the rows of an object and then reads the table's columns. The columns cannot
// change before the transaction ends, because the DELETE has locked the table.
func (l *loader) remove(ctx context.Context, tx pgx.Tx, source string) (t *table, err error) {
	q := &pgx.Batch{}
	q.Queue(settingsSQL)
	q.Queue(fmt.Sprintf("DELETE FROM %s WHERE %s = $1", l.table.Sanitize(), pgx.Identifier{l.Source}.Sanitize()), source)
	q.Queue(tableSQL, l.table.Sanitize()).Query(func(rows pgx.Rows) error {
		t, err = l.readTable(rows)
		return err
	})
	return t, tx.SendBatch(ctx, q).Close()
}

// copy streams the rows to the server. Its goroutine ends when the server accepts no more rows.
func (l *loader) copy(ctx context.Context, tx pgx.Tx, c *content, to *target) error {
	names := []string{pgx.Identifier{l.Source}.Sanitize()}
	for _, col := range to.columns {
		names = append(names, pgx.Identifier{col.name}.Sanitize())
	}
	sql := fmt.Sprintf("COPY %s (%s) FROM STDIN WITH (%s)", l.table.Sanitize(), strings.Join(names, ", "), c.options)
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := recoverDamage(func() error { return c.write(w, to) })
		_ = w.CloseWithError(err) // never fails
		written <- err
	}()
	_, err := tx.Conn().PgConn().CopyFrom(ctx, r, sql)
	_ = r.CloseWithError(io.ErrClosedPipe) // never fails
	if failed := <-written; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed // the error of the server only repeats failed
	}
	return l.explain(err, c)
}
