package postgres

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Never change a released step. Names are bytes, so that they compare byte by byte in every
// collation and encoding. Settled rows, the great majority, have no due time and are not in the
// partial index.
var migrations = []string{`
CREATE TABLE {}.record (
	space bytea NOT NULL,
	name  bytea NOT NULL,
	nonce uuid NOT NULL,
	due   timestamptz,
	body  text NOT NULL,
	PRIMARY KEY (space, name)
);
CREATE INDEX record_due ON {}.record (space, due, name) WHERE due IS NOT NULL;
`}

const (
	schemaSQL = "CREATE SCHEMA IF NOT EXISTS {};\n"
	formatSQL = `CREATE TABLE IF NOT EXISTS {}.format (
	version integer PRIMARY KEY,
	since   timestamptz NOT NULL DEFAULT now()
);
`
	newestSQL = `SELECT coalesce(max(version), 0) FROM {}.format`

	// catalogSQL also finds tables of versions before the record store. A lookup by name may use a
	// cache without the tables that another process has just created.
	catalogSQL = `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1), coalesce(bool_or(c.relname = 'format'), false),
		coalesce(string_agg(c.relname, ', ' ORDER BY c.relname) FILTER (WHERE (c.relname, a.attname) IN (('ledger', 'pipeline'), ('file', 'look_at'))), '')
		FROM pg_namespace n JOIN pg_class c ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid WHERE n.nspname = $1`
)

// Migrations returns the statements that create or upgrade the tables of a schema, for manual
// execution. Pawl's user needs USAGE on the schema and SELECT, INSERT, UPDATE and DELETE on its
// tables.
func Migrations(schema string, from int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "BEGIN;\nSELECT pg_advisory_xact_lock(%d);\n", migrationLockID(schema))
	if from == 0 {
		b.WriteString(withSchema(schema, schemaSQL+formatSQL))
	}
	for i := from; i < len(migrations); i++ {
		fmt.Fprintf(&b, "\n-- format %d\n%s\n", i+1, strings.TrimSpace(migration(schema, i)))
	}
	b.WriteString("COMMIT;\n")
	return b.String()
}

func migration(schema string, i int) string {
	return withSchema(schema, migrations[i]+fmt.Sprintf("INSERT INTO {}.format (version) VALUES (%d);", i+1))
}

func migrationLockID(schema string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("pawl store " + schema)) // never fails
	return int64(h.Sum64())
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// format is 0 if there are no tables.
func (s *Store) format(ctx context.Context, q querier) (exists bool, format int, err error) {
	var made bool
	var old string
	err = q.QueryRow(ctx, catalogSQL, s.schema).Scan(&exists, &made, &old)
	if err == nil && old != "" {
		return exists, 0, s.unusable("has tables of an older version, which this one cannot read ("+old+"): name another schema in the URL (schema=…), "+
			`then audit each pipeline, and run "pawl archive recover" for archives and "pawl files rebuild" for files: see docs/UPGRADING.md`, nil)
	}
	if err == nil && made {
		err = q.QueryRow(ctx, withSchema(s.schema, newestSQL)).Scan(&format)
	}
	if format > len(migrations) {
		err = s.unusable(fmt.Sprintf("has format %d, and this version supports formats up to %d: upgrade Pawl, or name another schema", format, len(migrations)), nil)
	}
	return exists, format, err
}

func (s *Store) requireCurrentFormat(ctx context.Context) error {
	_, format, err := s.format(ctx, s.pool)
	switch {
	case err != nil:
		return err
	case format == 0:
		return s.unusable(`has no tables yet: "pawl run", "pawl files serve" and "pawl ledger migrate" create them`, nil)
	case format < len(migrations):
		return s.unusable(fmt.Sprintf(`has format %d, and this version needs format %d: stop the processes of the older version, then run "pawl ledger migrate"`,
			format, len(migrations)), nil)
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) error {
	_, format, err := s.format(ctx, s.pool)
	if err != nil || format == len(migrations) {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.migrateIn(ctx, tx) })
}

// Another process may have migrated while this one waited for the lock.
func (s *Store) migrateIn(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", migrationLockID(s.schema)); err != nil {
		return err
	}
	exists, format, err := s.format(ctx, tx)
	if err != nil {
		return err
	}
	var script strings.Builder
	if !exists { // even IF NOT EXISTS needs a privilege that the user may not have
		script.WriteString(withSchema(s.schema, schemaSQL))
	}
	if format == 0 {
		script.WriteString(withSchema(s.schema, formatSQL))
	}
	for i := format; i < len(migrations); i++ {
		script.WriteString(migration(s.schema, i))
	}
	_, err = tx.Conn().PgConn().Exec(ctx, script.String()).ReadAll()
	if codeOf(err) == denied {
		return s.unusable(`has no tables of this format, and the user may not create them: run the output of "pawl ledger migrate --print" as the owner of the database, and `+s.grants(), err)
	}
	return err
}

func (s *Store) grants() string {
	return fmt.Sprintf("let this user work with them (GRANT USAGE ON SCHEMA %s TO …; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO …)",
		pgx.Identifier{s.schema}.Sanitize())
}
