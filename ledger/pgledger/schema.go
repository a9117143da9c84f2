package pgledger

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// migrations are the history of the format. One that was released is never
// changed: the next format is one more.
//
// Keys are bytes, so that they compare byte by byte and hold any byte, whatever the
// database's collation and encoding. The row is JSON text, for people with psql. The
// partial index holds only the rows that are due some time: settled rows, nearly all,
// cost it nothing.
var migrations = []string{`
CREATE TABLE {}.ledger (
	pipeline bytea NOT NULL,
	bucket   bytea NOT NULL,
	key      bytea NOT NULL,
	version  bytea NOT NULL,
	nonce    uuid NOT NULL,
	due      timestamptz,
	body     text NOT NULL,
	PRIMARY KEY (pipeline, bucket, key, version)
);
CREATE INDEX ledger_due ON {}.ledger (pipeline, due) WHERE due IS NOT NULL;
CREATE TABLE {}.register (
	name    text COLLATE "C" PRIMARY KEY,
	version text NOT NULL,
	value   bytea NOT NULL
);
`}

const (
	schemaSQL = "CREATE SCHEMA IF NOT EXISTS {};\n"
	formatSQL = `CREATE TABLE IF NOT EXISTS {}.format (
	version integer PRIMARY KEY,
	since   timestamptz NOT NULL DEFAULT now()
);
`
	newestSQL = `SELECT coalesce(max(version), 0) FROM {}.format`

	// thereSQL reads the catalogue. A look by name may answer from a cache that
	// does not know yet of what another worker has just made.
	thereSQL = `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
		EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'format')`
)

// Migrations returns the statements that make the tables of a schema, or bring
// them from a format to this Pawl's, for a person to run. The tables then are of
// whoever runs them: Pawl's user needs USAGE on the schema and SELECT, INSERT,
// UPDATE and DELETE on its tables.
func Migrations(schema string, from int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "BEGIN;\nSELECT pg_advisory_xact_lock(%d);\n", lockOf(schema))
	if from == 0 {
		b.WriteString(in(schema, schemaSQL+formatSQL))
	}
	for i := from; i < len(migrations); i++ {
		fmt.Fprintf(&b, "\n-- format %d\n%s\n", i+1, strings.TrimSpace(migration(schema, i)))
	}
	b.WriteString("COMMIT;\n")
	return b.String()
}

// migration is one step, with the note that it was made.
func migration(schema string, i int) string {
	return in(schema, migrations[i]+fmt.Sprintf("INSERT INTO {}.format (version) VALUES (%d);", i+1))
}

// lockOf is the advisory lock of a schema's migrations.
func lockOf(schema string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("pawl ledger " + schema)) // never fails
	return int64(h.Sum64())
}

// migrate brings the tables to this format, if they are older.
func (s *Store) migrate(ctx context.Context) error {
	_, format, err := s.format(ctx, s.pool)
	if err != nil {
		return err
	}
	if format < len(migrations) {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.migrateIn(ctx, tx) })
	}
	return s.known(format)
}

// known refuses tables that a newer Pawl made.
func (s *Store) known(format int) error {
	if format > len(migrations) {
		return s.refuse(fmt.Sprintf("has format %d, and this Pawl knows none above %d: upgrade Pawl, or name another schema", format, len(migrations)), nil)
	}
	return nil
}

// current refuses tables of another format, and a schema without tables.
func (s *Store) current(ctx context.Context) error {
	_, format, err := s.format(ctx, s.pool)
	switch {
	case err != nil:
		return err
	case format == 0:
		return s.refuse(`has no tables yet: "pawl run" or "pawl ledger migrate" makes them`, nil)
	case format < len(migrations):
		return s.refuse(fmt.Sprintf(`has format %d, and this Pawl reads format %d: stop the workers of the older version, then run "pawl ledger migrate"`,
			format, len(migrations)), nil)
	}
	return s.known(format)
}

// migrateIn makes the steps that are missing. Another worker may have made them
// while this one waited for the lock.
func (s *Store) migrateIn(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", lockOf(s.name)); err != nil {
		return err
	}
	there, format, err := s.format(ctx, tx)
	if err != nil {
		return err
	}
	var script strings.Builder
	if !there { // even to find that it is there needs a right that a tenant may lack
		script.WriteString(in(s.name, schemaSQL))
	}
	if format == 0 {
		script.WriteString(in(s.name, formatSQL))
	}
	for i := format; i < len(migrations); i++ {
		script.WriteString(migration(s.name, i))
	}
	_, err = tx.Conn().PgConn().Exec(ctx, script.String()).ReadAll()
	if denied(err) {
		return s.refuse(`has no tables of this format, and the user may not make them: run the output of "pawl ledger migrate --print" as the owner of the database, and `+s.grants(), err)
	}
	return err
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// format reports whether the schema is there, and the format of its tables, 0 where
// there are none.
func (s *Store) format(ctx context.Context, q querier) (there bool, format int, err error) {
	var made bool
	err = q.QueryRow(ctx, thereSQL, s.name).Scan(&there, &made)
	if err == nil && made {
		err = q.QueryRow(ctx, in(s.name, newestSQL)).Scan(&format)
	}
	return there, format, err
}

// grants says what a user needs.
func (s *Store) grants() string {
	return fmt.Sprintf("let this user work with them (GRANT USAGE ON SCHEMA %s TO …; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO …)",
		pgx.Identifier{s.name}.Sanitize())
}
