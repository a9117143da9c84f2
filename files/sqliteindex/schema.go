package sqliteindex

import "zombiezen.com/go/sqlite/sqlitemigration"

// schema is the history of the format. A migration that was released is never
// changed. The columns beside file are what queries go by; look_at is in
// microseconds since 1970, and state is a [files.State].
var schema = sqlitemigration.Schema{
	AppID: 0x50776669, // "Pwfi" in ASCII
	Migrations: []string{`
		CREATE TABLE file (
			id      TEXT PRIMARY KEY,
			entity  TEXT NOT NULL,
			key     TEXT NOT NULL UNIQUE,
			state   INTEGER NOT NULL,
			look_at INTEGER,
			nonce   BLOB NOT NULL,
			file    TEXT NOT NULL
		) STRICT;
		CREATE INDEX file_state ON file (entity, state, id);
		CREATE INDEX file_look_at ON file (look_at, id) WHERE look_at IS NOT NULL;
		CREATE TABLE quota (
			entity TEXT PRIMARY KEY,
			used   INTEGER NOT NULL,
			open   INTEGER NOT NULL
		) STRICT, WITHOUT ROWID;
		CREATE TABLE idempotency (
			entity TEXT NOT NULL,
			key    TEXT NOT NULL,
			id     TEXT NOT NULL,
			PRIMARY KEY (entity, key)
		) STRICT, WITHOUT ROWID;
	`},
}

const (
	openSQL  = `SELECT count(*) FROM pragma_table_info('quota') WHERE name = 'open'`
	loadSQL  = `SELECT file FROM file WHERE id = ?1`
	keySQL   = `SELECT file FROM file WHERE id = (SELECT id FROM idempotency WHERE entity = ?1 AND key = ?2)`
	heldSQL  = `SELECT file FROM file WHERE entity = ?1 AND state IN (1, 2, 3) LIMIT ?2`
	listSQL  = `SELECT file FROM file WHERE entity = ?1 AND state = 2 AND id > ?2 ORDER BY id LIMIT ?3`
	dueSQL   = `SELECT file FROM file WHERE look_at <= ?1 AND (look_at, id) > (?2, ?3) ORDER BY look_at, id LIMIT ?4`
	scanSQL  = `SELECT file FROM file WHERE key > ?1 ORDER BY key LIMIT ?2`
	usedSQL  = `SELECT used, open FROM quota WHERE entity = ?1`
	writeSQL = `INSERT INTO file (id, entity, key, state, look_at, nonce, file) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
		ON CONFLICT (id) DO UPDATE SET state = ?4, look_at = ?5, nonce = ?6, file = ?7`
	dropSQL    = `DELETE FROM file WHERE id = ?1`
	quotaSQL   = `INSERT INTO quota (entity, used, open) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET used = used + ?2, open = open + ?3`
	takeKeySQL = `INSERT INTO idempotency (entity, key, id) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET id = ?3`
	dropKeySQL = `DELETE FROM idempotency WHERE entity = ?1 AND key = ?2 AND id = ?3`
)
