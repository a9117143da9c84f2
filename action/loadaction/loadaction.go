// Package loadaction loads files into a table of the ledger's PostgreSQL, exactly
// once.
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
	// Pool connects to the ledger's database. Its number of connections bounds how many
	// files are loaded at a time.
	Pool *pgxpool.Pool
	// Complete completes a task in a transaction, as ledger.Complete does.
	Complete func(ctx context.Context, tx pgx.Tx, t *pawl.Task) error
	// Table is the table's name, with or without its schema: "exports", "raw.exports".
	Table string
	// Format is csv, ndjson or parquet.
	Format string
	// Source is the text column that holds the object's URL; default _source.
	Source string
	// MaxBytes bounds a file, uncompressed; default 1 GiB.
	MaxBytes int64
	// MaxLine bounds a line, or a CSV record, in bytes; default 1 MiB.
	MaxLine int
	Logger  *slog.Logger // default slog.Default()
}

// loader is the handler.
type loader struct {
	Config
	table  pgx.Identifier
	target string // the table's name in the database
}

// New returns a handler that replaces the rows of an object's earlier content by the
// rows of its current content, or by none if the object is gone, and completes the task
// in the same transaction. The pipeline must be transactional.
//
// New returns an error if the table is missing or has no text column for the source,
// and logs a warning if that column has no index.
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

// formats read the beginning of a file.
var formats = map[string]func(*loader, io.Reader) (*content, error){
	"csv": (*loader).csv, "ndjson": (*loader).ndjson, "parquet": (*loader).parquet,
}

// content is a file whose beginning was read.
type content struct {
	names   []string // of the columns, as the beginning gives them
	where   string   // where the names are, for errors
	byName  bool     // rows name their values: the beginning need not name all columns
	options string   // of COPY
	line    string   // what a line of COPY is in the file: "line" or "row"
	write   func(w io.Writer, to *target) error
	close   func()
}

// target is where the rows of a file go.
type target struct {
	source  string // the first value of each row
	table   *table
	columns []column // of the other values
}

// Concurrency implements [pawl.Limited].
func (l *loader) Concurrency() int { return int(l.Pool.Config().MaxConns) }

// Target implements [pawl.Replacer].
func (l *loader) Target() string { return "the table " + l.target }

// Handle implements [pawl.Handler].
//
// It acquires a connection before it opens the object. An attempt that waits for a
// connection then holds neither a stream, which the store would cut, nor a temporary
// file. The transaction begins after that, so it does not wait for the store to
// send the beginning of the file.
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
		defer func() { _ = body.Close() }() // it was read to its end, or the load failed
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

// settingsSQL bounds how long rows that another session locks hold a connection, and
// how long the server keeps rows locked for a worker whose machine is gone.
const settingsSQL = `SELECT set_config('lock_timeout', '5s', true), set_config('tcp_keepalives_idle', '30', true),
	set_config('tcp_keepalives_interval', '10', true), set_config('tcp_keepalives_count', '3', true)`

// replace replaces the rows of the object by those of c; nil: by none.
//
// The transaction is read committed whatever the database's default is: the row of the
// ledger changes meanwhile with each renewal of the lease.
func (l *loader) replace(ctx context.Context, conn *pgxpool.Conn, t *pawl.Task, c *content) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return l.explain(err, c)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing to undo after a commit
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

// remove deletes the rows of an object, and then reads the table's columns. They
// cannot change before the transaction ends, because the DELETE has locked the table.
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

// copy streams the rows. Its goroutine ends when the server takes no more.
func (l *loader) copy(ctx context.Context, tx pgx.Tx, c *content, to *target) error {
	names := []string{pgx.Identifier{l.Source}.Sanitize()}
	for _, col := range to.columns {
		names = append(names, pgx.Identifier{col.name}.Sanitize())
	}
	sql := fmt.Sprintf("COPY %s (%s) FROM STDIN WITH (%s)", l.table.Sanitize(), strings.Join(names, ", "), c.options)
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := recoverDamage(func() error { return c.write(w, to) })
		_ = w.CloseWithError(err) // never fails
		wrote <- err
	}()
	_, err := tx.Conn().PgConn().CopyFrom(ctx, r, sql)
	_ = r.CloseWithError(io.ErrClosedPipe) // never fails
	if failed := <-wrote; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed // the server's error only repeats it
	}
	return l.explain(err, c)
}
