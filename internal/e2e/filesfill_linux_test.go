package e2e

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/pgindex"
	"github.com/pawlhq/pawl/files/sqliteindex"
	"github.com/pawlhq/pawl/internal/servertest"
)

// filled is an index of many files, and its database without it.
type filled struct {
	index  files.Index
	list   func(context.Context, *rand.Rand) error // SELECTs a page
	insert func(context.Context) error             // INSERTs and commits the text of a row
}

// Half of the rows belong to one entity, the others by turns to those with
// albumFiles each.
const largeEntity = "large"

func album(i int) string { return fmt.Sprintf("album-%d", i) }

func albums() int { return *fileRows / albumFiles }

// rowID is the ID of row n, of 2*fileRows: in order of time, as UUIDs of version 7.
func rowID(n int) string {
	return fmt.Sprintf("019a%04x-%04x-7000-8000-%012x", n/65536, n%65536, n*2654435761%4294967296)
}

func rowEntity(n int) string {
	if n%2 == 0 {
		return largeEntity
	}
	return album(n / 2 % albums())
}

// The same in SQL, and an idempotency key. %s prints n as hexadecimal digits.
func rowSQL(hex func(value string, digits int) string) (id, entity, key string) {
	id = "'019a' || " + hex("n / 65536", 4) + " || '-' || " + hex("n % 65536", 4) + " || '-7000-8000-' || " + hex("n * 2654435761 % 4294967296", 12)
	entity = fmt.Sprintf("CASE n %% 2 WHEN 0 THEN '%s' ELSE 'album-' || (n / 2 %% %d) END", largeEntity, albums())
	return id, entity, hex("n * 2654435761 % 4294967296", 16)
}

// rowPromise is that of all files.
var rowPromise = files.Promise{Size: 48_123, ContentType: "image/jpeg", SHA256: [32]byte{1, 2, 3, 255}}

// The row that the service has written, and that others are copies of.
const (
	firstEntity = "first-entity"
	firstKey    = "first-idempotency-key"
)

// writeFirst lets the service write a row, and returns its ID.
func writeFirst(b *testing.B, index files.Index) string {
	b.Helper()
	s := newFilesService(b, index)
	f, _, err := s.Upload(b.Context(), firstEntity, firstKey, rowPromise)
	if err == nil {
		f, err = s.Look(b.Context(), f.ID, true)
	}
	if err != nil || f.State != files.Indexed {
		b.Fatal(f.State, err)
	}
	return f.ID
}

// copySQL copies what the first row has in a table, under other names in every
// column of text.
func copySQL(table, series, first string, columns []column, hex func(string, int) string) string {
	id, entity, key := rowSQL(hex)
	var names, values []string
	for _, c := range columns {
		names = append(names, c.name)
		value := c.name
		if c.text {
			value = fmt.Sprintf("replace(replace(replace(%s, '%s', id_), '%s', entity_), '%s', key_)", value, first, firstEntity, firstKey)
		}
		values = append(values, value)
	}
	return fmt.Sprintf("INSERT INTO %[1]s (%[2]s) SELECT %[3]s FROM %[1]s, (SELECT %[4]s AS id_, %[5]s AS entity_, %[6]s AS key_ FROM %[7]s) AS names",
		table, strings.Join(names, ", "), strings.Join(values, ", "), id, entity, key, series)
}

type column struct {
	name string
	text bool
}

// openSQLite opens the index, and fills it if it is not there.
func openSQLite(b *testing.B, path string) *sqliteindex.Index {
	b.Helper()
	_, missing := os.Stat(path)
	open := func() *sqliteindex.Index {
		index, err := sqliteindex.Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		return index
	}
	index := open()
	if missing != nil {
		first := writeFirst(b, index)
		if err := index.Close(); err != nil {
			b.Fatal(err)
		}
		fillSQLite(b, path, first)
		index = open()
	}
	b.Cleanup(func() { _ = index.Close() })
	return index
}

func newFilledSQLite(b *testing.B, path string) filled {
	b.Helper()
	index := openSQLite(b, path)
	bare := connectSQLite(b, path, "PRAGMA synchronous = FULL", "CREATE TABLE IF NOT EXISTS bare (id TEXT PRIMARY KEY, file TEXT NOT NULL) STRICT")
	text := ""
	err := sqlitex.Execute(bare, "SELECT file FROM file LIMIT 1", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error { text = s.ColumnText(0); return nil }})
	if err != nil {
		b.Fatal(err)
	}
	return filled{
		index: index,
		list: func(_ context.Context, rng *rand.Rand) error {
			n, got := rng.IntN(2**fileRows), 0
			return sqlitex.Execute(bare, `SELECT file FROM file WHERE entity = ?1 AND state = 2 AND id > ?2 ORDER BY id LIMIT 101`, &sqlitex.ExecOptions{
				Args:       []any{rowEntity(n), rowID(n)},
				ResultFunc: func(s *sqlite.Stmt) error { got += len(s.ColumnText(0)); return nil },
			})
		},
		insert: func(context.Context) error {
			return sqlitex.Execute(bare, `INSERT INTO bare VALUES (?1, ?2)`, &sqlitex.ExecOptions{Args: []any{crand.Text(), text}})
		},
	}
}

func connectSQLite(b *testing.B, path string, statements ...string) *sqlite.Conn {
	b.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	for _, sql := range statements {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			b.Fatal(err)
		}
	}
	return conn
}

// fillSQLite copies the first row without waiting for the disk.
func fillSQLite(b *testing.B, path, first string) {
	b.Helper()
	began := time.Now()
	conn := connectSQLite(b, path, "PRAGMA journal_mode = off", "PRAGMA synchronous = off", "PRAGMA cache_size = -500000")
	series := fmt.Sprintf("(WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s)", 2**fileRows-1)
	hex := func(value string, digits int) string { return fmt.Sprintf("printf('%%0%dx', %s)", digits, value) }
	for _, table := range []string{"file", "idempotency"} {
		var columns []column
		err := sqlitex.ExecuteTransient(conn, "SELECT name, type = 'TEXT' FROM pragma_table_info('"+table+"')", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			columns = append(columns, column{s.ColumnText(0), s.ColumnInt(1) == 1})
			return nil
		}})
		if err == nil {
			err = sqlitex.ExecuteTransient(conn, copySQL(table, series, first, columns, hex), nil)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		b.Fatal(err)
	}
	b.Logf("filled in %s", time.Since(began))
}

func newFilledPostgres(b *testing.B) filled {
	b.Helper()
	server := servertest.Postgres(b, "fsync=on", "max_wal_size=8GB")
	index, err := pgindex.Open(b.Context(), server.With(func(_ *url.URL, p url.Values) { p.Set("schema", "pawl") }))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = index.Close() })
	bare, err := pgx.Connect(b.Context(), server.URL)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = bare.Close(context.Background()) })
	fillPostgres(b, bare, writeFirst(b, index))
	var text string
	if err := bare.QueryRow(b.Context(), "SELECT file FROM pawl.file LIMIT 1").Scan(&text); err != nil {
		b.Fatal(err)
	}
	return filled{
		index: index,
		list: func(ctx context.Context, rng *rand.Rand) error {
			n := rng.IntN(2 * *fileRows)
			rows, err := bare.Query(ctx, `SELECT file FROM pawl.file WHERE entity = $1 AND state = 2 AND id > $2 ORDER BY id LIMIT 101`, rowEntity(n), rowID(n))
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		},
		insert: func(ctx context.Context) error {
			_, err := bare.Exec(ctx, `INSERT INTO bare VALUES ($1, $2)`, crand.Text(), text)
			return err
		},
	}
}

func fillPostgres(b *testing.B, conn *pgx.Conn, first string) {
	b.Helper()
	began := time.Now()
	series := fmt.Sprintf("generate_series(0, %d::bigint) AS n", 2**fileRows-1)
	hex := func(value string, digits int) string { return fmt.Sprintf("lpad(to_hex(%s), %d, '0')", value, digits) }
	exec := func(sql string) {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatalf("%s: %v", sql, err)
		}
	}
	for _, table := range []string{"file", "file_idempotency"} {
		rows, err := conn.Query(b.Context(), "SELECT column_name, data_type = 'text' FROM information_schema.columns WHERE table_schema = 'pawl' AND table_name = $1", table)
		if err != nil {
			b.Fatal(err)
		}
		columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) { return c, row.Scan(&c.name, &c.text) })
		if err != nil {
			b.Fatal(err)
		}
		exec(copySQL("pawl."+table, series, first, columns, hex))
	}
	exec("CREATE TABLE bare (id text COLLATE \"C\" PRIMARY KEY, file text NOT NULL)")
	exec("VACUUM ANALYZE")
	exec("CHECKPOINT")
	b.Logf("filled in %s", time.Since(began))
}
