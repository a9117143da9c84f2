// Package pgindex keeps an index of files in PostgreSQL, for services on many
// machines: in a schema that it may share with a ledger.
//
// It keeps no session state and prepares no named statements, so a pooler in
// transaction mode, like PgBouncer, may stand in between.
package pgindex

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/files"
)

// patience is how long one call may take.
const patience = 15 * time.Second

// Index is a [files.Index] in a PostgreSQL database.
type Index struct {
	place  string // for people: no password
	schema string // quoted
	pool   *pgxpool.Pool
	turns  turns
}

var _ files.Index = (*Index)(nil)

// Open opens the index in the database that a URL names, and makes or upgrades its
// tables:
//
//	postgres://user:password@host:5432/database?schema=pawl&pool_max_conns=8
//
// Besides schema, which is pawl unless named, it takes what pgx takes. The user needs
// the right to make tables in the schema, or the schema itself.
func Open(ctx context.Context, url string) (*Index, error) { return open(ctx, url, true) }

// OpenExisting is Open of an index that is there already: it neither makes tables nor
// upgrades them, and refuses those of another format.
func OpenExisting(ctx context.Context, url string) (*Index, error) { return open(ctx, url, false) }

func open(ctx context.Context, url string, create bool) (*Index, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("pgindex: the URL cannot be read: write postgres://user:password@host:5432/database (%w)", err)
	}
	// Described once a connection, and never named: a pooler may send the next
	// statement to another server process.
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	schema := "pawl"
	if named := c.ConnConfig.RuntimeParams["schema"]; named != "" {
		schema = named
	}
	delete(c.ConnConfig.RuntimeParams, "schema")
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "pawl files"
	}
	x := &Index{
		place:  fmt.Sprintf("%s:%d/%s schema %s", c.ConnConfig.Host, c.ConnConfig.Port, c.ConnConfig.Database, schema),
		schema: pgx.Identifier{schema}.Sanitize(),
	}
	if x.pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
		return nil, x.failed("opening", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := x.prepare(ctx, schema, create); err != nil {
		oneLine := errors.New(strings.Join(strings.Fields(err.Error()), " "))
		return nil, errors.Join(x.failed("opening", oneLine), x.Close())
	}
	return x, nil
}

// prepare refuses a database that cannot hold all names, and makes the tables.
func (x *Index) prepare(ctx context.Context, schema string, create bool) error {
	var encoding string
	if err := x.pool.QueryRow(ctx, `SELECT current_setting('server_encoding')`).Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database has the encoding %s: make one with ENCODING 'UTF8'", encoding)
	}
	prepare := x.current
	if create {
		prepare = x.migrate
	}
	err := prepare(ctx, schema)
	if err == nil {
		err = x.complete(ctx, schema)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42501" { // insufficient_privilege
		return fmt.Errorf("the user may not make the tables, or not use them: let it (GRANT USAGE, CREATE ON SCHEMA %s TO …): %w", x.schema, err)
	}
	return err
}

// Close closes all connections, when those in use have come back.
func (x *Index) Close() error {
	x.pool.Close()
	return nil
}

// Apply implements [files.Index]. What counts against the quota, and what begins,
// holds its entity's lock: quota and idempotency key are then read and written by one
// change at a time. Any other change holds its row alone.
func (x *Index) Apply(ctx context.Context, c files.Change) (o files.Outcome, err error) {
	text, err := json.Marshal(&c.Next)
	if err != nil {
		return o, x.failed("writing to", err)
	}
	err = x.call(ctx, "writing to", func(ctx context.Context) error {
		end, err := x.turns.take(ctx, c.Next.Entity)
		if err != nil {
			return err
		}
		defer end()
		return pgx.BeginFunc(ctx, x.pool, func(tx pgx.Tx) error {
			found, err := x.find(ctx, tx, &c)
			if err != nil {
				return err
			}
			if o = found.judge(&c); o.Result != files.Applied {
				return nil
			}
			return x.write(ctx, tx, &c, string(text), found.old == nil)
		})
	})
	return o, err
}

// standing is what a change meets.
type standing struct {
	old    *files.File // row of the same ID
	holder *files.File // row that the idempotency key belongs to
	used   files.Usage // of the entity
}

// find reads what a change meets, in one round trip, and keeps it from changing.
func (x *Index) find(ctx context.Context, tx pgx.Tx, c *files.Change) (s standing, err error) {
	f := &c.Next
	b := &pgx.Batch{}
	b.Queue(syncSQL)
	b.Queue(waitSQL)
	b.Queue(x.in(lockSQL), f.Entity, c.Add != files.Usage{} || c.Expect == files.Nonce{})
	row := func(into **files.File) func(pgx.Rows) error {
		return func(rows pgx.Rows) error {
			found, err := collect(rows)
			if len(found) > 0 {
				*into = &found[0]
			}
			return err
		}
	}
	b.Queue(x.in(ownSQL), f.ID).Query(row(&s.old))
	b.Queue(x.in(keySQL), f.Entity, f.Idempotency).Query(row(&s.holder))
	b.Queue(x.in(usedSQL), f.Entity).QueryRow(func(row pgx.Row) error { return row.Scan(&s.used.Bytes, &s.used.Open) })
	return s, tx.SendBatch(ctx, b).Close()
}

// judge says what becomes of a change.
func (s *standing) judge(c *files.Change) files.Outcome {
	switch {
	case s.old == nil && c.Expect != files.Nonce{}, s.old != nil && s.old.Nonce != c.Expect:
		return files.Outcome{Result: files.Refused, Current: s.old}
	case s.old == nil && s.holder != nil && s.holder.State != files.Expired:
		return files.Outcome{Result: files.KeyTaken, Current: s.holder}
	}
	return files.Outcome{Result: c.Check(s.used)}
}

func (x *Index) write(ctx context.Context, tx pgx.Tx, c *files.Change, text string, begins bool) error {
	f := &c.Next
	b := &pgx.Batch{}
	row := []any{f.ID, int16(f.State), pgtype.Timestamptz{Time: f.LookAt, Valid: !f.LookAt.IsZero()}, text}
	switch {
	case c.Drop:
		b.Queue(x.in(dropKeySQL), f.Entity, f.Idempotency, f.ID)
		b.Queue(x.in(dropSQL), f.ID)
	case begins:
		b.Queue(x.in(insertSQL), append(row, f.Entity, f.Key)...)
		if f.Idempotency != "" {
			b.Queue(x.in(takeKeySQL), f.Entity, f.Idempotency, f.ID)
		}
	default:
		b.Queue(x.in(updateSQL), row...)
	}
	if c.Add != (files.Usage{}) {
		b.Queue(x.in(quotaSQL), f.Entity, c.Add.Bytes, c.Add.Open)
	}
	return tx.SendBatch(ctx, b).Close()
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
	return x.query(ctx, dueSQL, before, from.LookAt, from.ID, limit)
}

// Used implements [files.Index].
func (x *Index) Used(ctx context.Context, entity string) (u files.Usage, err error) {
	err = x.call(ctx, "reading", func(ctx context.Context) error {
		return x.pool.QueryRow(ctx, x.in(usedSQL), entity).Scan(&u.Bytes, &u.Open)
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
	err = x.call(ctx, "reading", func(ctx context.Context) error {
		rows, err := x.pool.Query(ctx, x.in(sql), args...)
		if err == nil {
			found, err = collect(rows)
		}
		return err
	})
	return found, err
}

// collect reads the files that a query selects.
func collect(rows pgx.Rows) (found []files.File, err error) {
	var text string
	_, err = pgx.ForEachRow(rows, []any{&text}, func() error {
		var f files.File
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return fmt.Errorf("a row cannot be read: %w", err)
		}
		found = append(found, f)
		return nil
	})
	return found, err
}

// call runs do within the patience of one call.
func (x *Index) call(ctx context.Context, doing string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := do(ctx); err != nil {
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "25006" {
			x.pool.Reset() // after a failover the name leads to another server
		}
		return x.failed(doing, err)
	}
	return nil
}

func (x *Index) failed(doing string, err error) error {
	return fmt.Errorf("pgindex: %s the index at %s: %w", doing, x.place, err)
}
