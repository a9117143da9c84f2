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
	// Pool connects to the ledger's database. Its size limits the concurrent loads.
	Pool *pgxpool.Pool
	// Complete completes a task in a transaction, like ledger.Complete.
	Complete func(ctx context.Context, tx pgx.Tx, t *pawl.Task) error
	// Table is the name of a table, with or without a schema.
	Table string
	// Format is csv, ndjson or parquet.
	Format string
	// Source is the text column for the object's URL; default _source.
	Source string
	// MaxBytes limits an uncompressed file; default 1 GiB.
	MaxBytes int64
	// MaxLine limits a line or a CSV record, in bytes; default 1 MiB.
	MaxLine int
	Logger  *slog.Logger // default slog.Default()
}

type loader struct {
	Config
	table  pgx.Identifier
	target string
}

// New returns a handler that replaces the rows of an object's previous version, and completes the
// task in the same transaction. The pipeline must be transactional.
//
// New returns an error if the table is missing or has no text column for the source. It warns if
// that column has no index.
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
		return nil, errors.New("load: max_bytes and max_line must not be negative")
	case formats[l.Format] == nil:
		return nil, fmt.Errorf("load: format %s is not known: want csv, ndjson or parquet", event.Quote(l.Format))
	}
	if err := l.checkTable(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

var formats = map[string]func(*loader, io.Reader) (*content, error){
	"csv": (*loader).csv, "ndjson": (*loader).ndjson, "parquet": (*loader).parquet,
}

type content struct {
	names   []string
	where   string // of the names, for errors
	byName  bool   // the first line need not name all columns
	options string // of COPY
	line    string // in errors: "line" or "row"
	write   func(w io.Writer, to *target) error
	close   func()
}

type target struct {
	source  string // first value of each row
	table   *table
	columns []column // of the other values
}

// Concurrency implements [pawl.Limited].
func (l *loader) Concurrency() int { return int(l.Pool.Config().MaxConns) }

// Target implements [pawl.Replacer].
func (l *loader) Target() string { return "the table " + l.target }

// Handle implements [pawl.Handler].
//
// It acquires a connection first. A waiting attempt therefore has neither an open stream, which the
// store would close, nor a temporary file.
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
		defer func() { _ = body.Close() }()
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

// settingsSQL limits the wait for locked rows, and how long the server keeps rows locked for a
// failed machine.
const settingsSQL = `SELECT set_config('lock_timeout', '5s', true), set_config('tcp_keepalives_idle', '30', true),
	set_config('tcp_keepalives_interval', '10', true), set_config('tcp_keepalives_count', '3', true)`

// The isolation level is read committed, because each lease renewal changes the object's row in
// the ledger.
func (l *loader) replace(ctx context.Context, conn *pgxpool.Conn, t *pawl.Task, c *content) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return l.explain(err, c)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after a commit
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

// The DELETE locks the table, so that its columns cannot change before the transaction ends.
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

// The goroutine of copy ends when the server accepts no more rows.
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
		return failed // the server's error repeats it
	}
	return l.explain(err, c)
}
