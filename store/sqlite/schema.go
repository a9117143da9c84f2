package sqlite

const (
	// https://www.sqlite.org/pragma.html#pragma_application_id
	applicationID = 0x5061776C
	// filesID identifies file indexes of earlier versions.
	filesID = 0x50776669
	// Formats 1 and 2 belonged to ledgers of earlier versions.
	format = 3
)

// due is in milliseconds since 1970. The table has a rowid, because random keys would split the
// large leaves of a table without one.
const schema = `
	CREATE TABLE record (
		space BLOB NOT NULL,
		name  BLOB NOT NULL,
		nonce BLOB NOT NULL CHECK (length(nonce) = 16),
		due   INTEGER,
		body  TEXT NOT NULL,
		PRIMARY KEY (space, name)
	) STRICT;
	CREATE INDEX record_due ON record (space, due, name) WHERE due IS NOT NULL;
`

const (
	insertSQL = `INSERT INTO record (space, name, nonce, due, body) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`
	updateSQL = `UPDATE record SET nonce = ?3, due = ?4, body = ?5 WHERE space = ?1 AND name = ?2 AND nonce = ?6`
	deleteSQL = `DELETE FROM record WHERE space = ?1 AND name = ?2 AND nonce = ?3`
	putSQL    = `UPDATE record SET nonce = ?3, due = ?4, body = ?5 WHERE space = ?1 AND name = ?2`

	columns = `SELECT nonce, due, body, name FROM record WHERE space = ?1 `

	loadSQL = columns + `AND name = ?2`
	dueSQL  = columns + `AND due IS NOT NULL AND (due, name) > (?2, ?3) AND due <= ?4 ORDER BY due, name LIMIT ?5 OFFSET ?6`

	// SQLite plans a statement before it knows the bounds.
	scanSQL     = columns + `AND name > ?2 ORDER BY name LIMIT ?3`
	scanToSQL   = columns + `AND name > ?2 AND name < ?4 ORDER BY name LIMIT ?3`
	newestSQL   = columns + `AND name > ?2 ORDER BY name DESC LIMIT ?3`
	newestToSQL = columns + `AND name > ?2 AND name < ?4 ORDER BY name DESC LIMIT ?3`
)
