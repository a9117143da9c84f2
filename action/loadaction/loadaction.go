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

// Config says what is loaded where. Pool, Complete, Table and Format are required.
type Config struct {
	// Pool connects to the ledger's database. So many files are loaded at a time
	// as it has connections.
	Pool *pgxpool.Pool
	// Complete completes a task in a transaction, as pgledger.Complete does.
	Complete func(ctx context.Context, tx pgx.Tx, t *pawl.Task) error
	// Table is the table's name, perhaps with its schema: "exports", "raw.exports".
	Table string
	// Format is csv, ndjson or parquet.
	Format string
	// Source is the text column that holds the object's URL; default _source.
	Source string
	// MaxBytes bounds a file, unpacked; default 1 GiB.
	MaxBytes int64
	// MaxLine bounds a line in bytes, or a record of CSV; default 1 MiB.
	MaxLine int
	Logger  *slog.Logger // default slog.Default()
}

// loader is the handler.
type loader struct {
	Config
	table   pgx.Identifier
	columns []column // of the table
}

// column is one of the table's columns that can be loaded.
type column struct {
	name, kind string
	filled     bool // it has a default
}

// New returns a handler that replaces the rows that an object brought before by
// those that it holds now, or by none if it is gone, and completes its task, in one
// transaction. The pipeline must be transactional.
//
// It looks at the table: one that is not there, or without a text column for the
// source, is an error; a source column without an index is warned of.
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
	if err := l.look(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// formats begin to read a file. They return its columns, or an error that says
// where it is wrong.
var formats = map[string]func(*loader, io.Reader) (*content, error){
	"csv": (*loader).csv, "ndjson": (*loader).ndjson, "parquet": (*loader).parquet,
}

// content is a file that was begun.
type content struct {
	columns []string
	options string // of COPY
	line    string // what COPY's lines are in the file: "line" or "row"
	// write writes all of it to COPY, with source as the first value of each row.
	write func(to io.Writer, source string) error
	close func()
}

const tableSQL = `SELECT attname, format_type(atttypid, NULL), atthasdef OR attidentity <> '' OR attgenerated <> '', attgenerated <> ''
	FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`

const indexSQL = `SELECT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
	WHERE i.indrelid = to_regclass($1) AND i.indpred IS NULL AND a.attname = $2)`

// look learns the table's columns.
func (l *loader) look(ctx context.Context) error {
	rows, err := l.Pool.Query(ctx, tableSQL, l.table.Sanitize())
	if err != nil {
		return l.explain(err, nil)
	}
	source := ""
	var c column
	var generated bool
	if _, err := pgx.ForEachRow(rows, []any{&c.name, &c.kind, &c.filled, &generated}, func() error {
		switch {
		case c.name == l.Source:
			source = c.kind
		case !generated:
			l.columns = append(l.columns, c)
		}
		return nil
	}); err != nil {
		return l.explain(err, nil)
	}
	switch {
	case len(l.columns) == 0 && source == "":
		return fmt.Errorf("load: there is no table %s: make it, or correct its name", l.Table)
	case source != "text" && source != "character varying":
		return fmt.Errorf("load: the table %s needs a text column %s for the URL of each row's object (ALTER TABLE %[1]s ADD %[3]s text)",
			l.Table, event.Quote(l.Source), pgx.Identifier{l.Source}.Sanitize())
	}
	var indexed bool
	if err := l.Pool.QueryRow(ctx, indexSQL, l.table.Sanitize(), l.Source).Scan(&indexed); err != nil {
		return l.explain(err, nil)
	}
	if !indexed {
		l.Logger.Warn("the table has no index on the column of the source, so each load reads all of it",
			"table", l.Table, "do", fmt.Sprintf("CREATE INDEX ON %s (%s)", l.table.Sanitize(), pgx.Identifier{l.Source}.Sanitize()))
	}
	return nil
}

// Concurrency implements pawl.Limited.
func (l *loader) Concurrency() int { return int(l.Pool.Config().MaxConns) }

// Handle implements [pawl.Handler].
func (l *loader) Handle(ctx context.Context, t *pawl.Task) error {
	var c *content
	if t.Kind == event.Created {
		body, err := t.Open(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }() // it was read to its end, or does not matter
		in, closed, err := unpack(body, l.MaxBytes)
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
	if err := l.replace(ctx, t, c); err != nil {
		return fmt.Errorf("load %s: %w", t.Object, err)
	}
	return nil
}

// settingsSQL bounds how long rows that another session keeps locked hold a
// connection, of which there are few; and how long the server keeps rows locked for a
// worker whose machine is gone.
const settingsSQL = `SELECT set_config('lock_timeout', '5s', true), set_config('tcp_keepalives_idle', '30', true),
	set_config('tcp_keepalives_interval', '10', true), set_config('tcp_keepalives_count', '3', true)`

// replace puts the rows in the place of those that were there; c is nil for none.
func (l *loader) replace(ctx context.Context, t *pawl.Task, c *content) error {
	tx, err := l.Pool.Begin(ctx)
	if err != nil {
		return l.explain(err, c)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing to undo after a commit
	source := "s3://" + t.Object.Bucket + "/" + t.Object.Key
	q := &pgx.Batch{}
	q.Queue(settingsSQL)
	q.Queue(fmt.Sprintf("DELETE FROM %s WHERE %s = $1", l.table.Sanitize(), pgx.Identifier{l.Source}.Sanitize()), source)
	if err := tx.SendBatch(ctx, q).Close(); err != nil {
		return l.explain(err, c)
	}
	if c != nil {
		if err := l.copy(ctx, tx, c, source); err != nil {
			return err
		}
	}
	if err := l.Complete(ctx, tx, t); err != nil {
		return err
	}
	return l.explain(tx.Commit(ctx), c)
}

// copy streams the rows. Its goroutine ends when the server takes no more.
func (l *loader) copy(ctx context.Context, tx pgx.Tx, c *content, source string) error {
	names := make([]string, 0, len(c.columns)+1)
	for _, name := range append([]string{l.Source}, c.columns...) {
		names = append(names, pgx.Identifier{name}.Sanitize())
	}
	sql := fmt.Sprintf("COPY %s (%s) FROM STDIN WITH (%s)", l.table.Sanitize(), strings.Join(names, ", "), c.options)
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := undamaged(func() error { return c.write(w, source) })
		_ = w.CloseWithError(err) // never fails
		wrote <- err
	}()
	_, err := tx.Conn().PgConn().CopyFrom(ctx, r, sql)
	_ = r.CloseWithError(io.ErrClosedPipe) // never fails
	if failed := <-wrote; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed // which the server only heard of
	}
	return l.explain(err, c)
}
