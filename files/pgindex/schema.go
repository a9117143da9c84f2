package pgindex

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// migrations are the history of the format. One that was released is never changed.
// Names compare byte by byte, whatever the database's collation. The columns beside
// file are those that queries go by; state is a [files.State].
var migrations = []string{`
CREATE TABLE {}.file (
	id      text COLLATE "C" PRIMARY KEY,
	entity  text COLLATE "C" NOT NULL,
	key     text COLLATE "C" NOT NULL UNIQUE,
	state   smallint NOT NULL,
	look_at timestamptz,
	file    text NOT NULL
);
CREATE INDEX file_state ON {}.file (entity, state, id);
CREATE INDEX file_look_at ON {}.file (look_at, id) WHERE look_at IS NOT NULL;
CREATE TABLE {}.file_quota (
	entity text COLLATE "C" PRIMARY KEY,
	used   bigint NOT NULL,
	open   bigint NOT NULL
);
CREATE TABLE {}.file_idempotency (
	entity text COLLATE "C" NOT NULL,
	key    text COLLATE "C" NOT NULL,
	id     text COLLATE "C" NOT NULL,
	PRIMARY KEY (entity, key)
);
`}

const (
	// thereSQL reads the catalogue. A look by name may answer from a cache that does
	// not know yet of what another process has just made.
	thereSQL = `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
		EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'file_format')`
	schemaSQL = `CREATE SCHEMA IF NOT EXISTS {};`
	formatSQL = `CREATE TABLE {}.file_format (version integer PRIMARY KEY);`
	newestSQL = `SELECT coalesce(max(version), 0) FROM {}.file_format`
	openSQL   = `SELECT EXISTS (SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = 'file_quota' AND a.attname = 'open')`
	migrateSQL = `SELECT pg_advisory_xact_lock(hashtextextended('pawl files ' || $1, 0))`

	// lockSQL lets the changes of one entity that need it run one after the other, and
	// what was answered for is on the disk, even where the database is set up to be
	// careless. No change waits long for another, and what a process that stands still,
	// or is cut off, has locked is free again soon.
	lockSQL = `SELECT pg_advisory_xact_lock(hashtextextended('pawl files {} ' || $1, 0)) WHERE $2`
	syncSQL = `SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`
	waitSQL = `SELECT set_config('lock_timeout', '2s', true), set_config('idle_in_transaction_session_timeout', '5s', true)`

	loadSQL   = `SELECT file FROM {}.file WHERE id = $1`
	ownSQL    = loadSQL + ` FOR UPDATE`
	keySQL    = `SELECT f.file FROM {}.file_idempotency i JOIN {}.file f ON f.id = i.id WHERE i.entity = $1 AND i.key = $2`
	heldSQL   = `SELECT file FROM {}.file WHERE entity = $1 AND state IN (1, 2, 3) LIMIT $2`
	listSQL   = `SELECT file FROM {}.file WHERE entity = $1 AND state = 2 AND id > $2 ORDER BY id LIMIT $3`
	dueSQL    = `SELECT file FROM {}.file WHERE look_at <= $1 AND (look_at, id) > ($2, $3) ORDER BY look_at, id LIMIT $4`
	scanSQL   = `SELECT file FROM {}.file WHERE key > $1 ORDER BY key LIMIT $2`
	usedSQL   = `SELECT coalesce(sum(used), 0)::bigint, coalesce(sum(open), 0)::bigint FROM {}.file_quota WHERE entity = $1`
	insertSQL = `INSERT INTO {}.file (id, state, look_at, file, entity, key) VALUES ($1, $2, $3, $4, $5, $6)`
	updateSQL = `UPDATE {}.file SET state = $2, look_at = $3, file = $4 WHERE id = $1`
	dropSQL   = `DELETE FROM {}.file WHERE id = $1`
	quotaSQL  = `INSERT INTO {}.file_quota AS q (entity, used, open) VALUES ($1, $2, $3) ON CONFLICT (entity) DO UPDATE SET used = q.used + $2, open = q.open + $3`

	takeKeySQL = `INSERT INTO {}.file_idempotency (entity, key, id) VALUES ($1, $2, $3) ON CONFLICT (entity, key) DO UPDATE SET id = $3`
	dropKeySQL = `DELETE FROM {}.file_idempotency WHERE entity = $1 AND key = $2 AND id = $3`
)

// in puts the schema's name into a statement.
func (x *Index) in(sql string) string { return strings.ReplaceAll(sql, "{}", x.schema) }

// known refuses tables that a newer Pawl made.
func known(format int) error {
	if format > len(migrations) {
		return fmt.Errorf("the tables have format %d, and this Pawl knows none above %d: upgrade Pawl, or name another schema", format, len(migrations))
	}
	return nil
}

// current refuses tables of another format, and a schema without tables. It changes
// nothing.
func (x *Index) current(ctx context.Context, name string) error {
	var there, made bool
	if err := x.pool.QueryRow(ctx, thereSQL, name).Scan(&there, &made); err != nil {
		return err
	}
	if !made {
		return errors.New("there is no index yet: \"pawl files serve\" makes it")
	}
	var format int
	if err := x.pool.QueryRow(ctx, x.in(newestSQL)).Scan(&format); err != nil {
		return err
	}
	if format < len(migrations) {
		return fmt.Errorf("the tables have format %d, and this Pawl works with format %d: stop the processes of the older version, then start \"pawl files serve\", which upgrades them", format, len(migrations))
	}
	return known(format)
}

// complete refuses tables of format 1 from before its release, which do not count open
// uploads.
func (x *Index) complete(ctx context.Context, name string) error {
	var open bool
	if err := x.pool.QueryRow(ctx, openSQL, name).Scan(&open); err != nil || open {
		return err
	}
	return errors.New("a version before the first release made the tables, without the number of open uploads, and they cannot be upgraded: name a new schema, start \"pawl files serve\", which makes the tables, and run \"pawl files rebuild\"")
}

// migrate makes the tables if it may, or brings them to this format. Processes that
// start together do so one after the other.
func (x *Index) migrate(ctx context.Context, name string) error {
	return pgx.BeginFunc(ctx, x.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, migrateSQL, name); err != nil {
			return err
		}
		var there, made bool
		if err := tx.QueryRow(ctx, thereSQL, name).Scan(&there, &made); err != nil {
			return err
		}
		script, format := "", 0
		switch {
		case made:
			if err := tx.QueryRow(ctx, x.in(newestSQL)).Scan(&format); err != nil {
				return err
			}
		case there: // even to find that it is there needs a right that a tenant may lack
			script = formatSQL
		default:
			script = schemaSQL + formatSQL
		}
		if err := known(format); err != nil {
			return err
		}
		for i := format; i < len(migrations); i++ {
			script += migrations[i] + fmt.Sprintf("INSERT INTO {}.file_format VALUES (%d);", i+1)
		}
		_, err := tx.Conn().PgConn().Exec(ctx, x.in(script)).ReadAll()
		return err
	})
}
