package sqliteledger

import "zombiezen.com/go/sqlite/sqlitemigration"

// applicationID marks the file as ours: "Pawl" in ASCII.
// https://www.sqlite.org/pragma.html#pragma_application_id
const applicationID = 0x5061776C

// schema is the history of the format. A migration that was released is never
// changed: the next format is one more.
//
// Keys are blobs, so that they compare byte by byte and hold any byte. The row
// is JSON text, for people with the sqlite3 shell. The partial index holds only
// the rows that are due some time, in microseconds since 1970: settled rows,
// nearly all, cost it nothing.
var schema = sqlitemigration.Schema{
	AppID: applicationID,
	Migrations: []string{`
		CREATE TABLE ledger (
			pipeline BLOB NOT NULL,
			bucket   BLOB NOT NULL,
			key      BLOB NOT NULL,
			version  BLOB NOT NULL,
			nonce    BLOB NOT NULL,
			due      INTEGER,
			row      TEXT NOT NULL,
			PRIMARY KEY (pipeline, bucket, key, version)
		) STRICT;
		CREATE INDEX ledger_due ON ledger (pipeline, due) WHERE due IS NOT NULL;
	`, `
		CREATE TABLE register (
			name    TEXT PRIMARY KEY,
			version TEXT NOT NULL,
			value   BLOB NOT NULL
		) STRICT, WITHOUT ROWID;
		UPDATE ledger SET row = replace(replace(row, '"doubt":"look"', '"doubt":true'), '"doubt":"act"', '"forced":true')
			WHERE row LIKE '%"doubt":"%';
	`},
}

const (
	insertSQL = `INSERT INTO ledger (pipeline, bucket, key, version, nonce, due, row)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING`
	updateSQL = `UPDATE ledger SET nonce = ?5, due = ?6, row = ?7
		WHERE pipeline = ?1 AND bucket = ?2 AND key = ?3 AND version = ?4 AND nonce = ?8`
	deleteSQL = `DELETE FROM ledger
		WHERE pipeline = ?1 AND bucket = ?2 AND key = ?3 AND version = ?4 AND nonce = ?5`

	columns = `SELECT pipeline, bucket, key, version, nonce, row FROM ledger `

	loadSQL = columns + `WHERE pipeline = ?1 AND bucket = ?2 AND key = ?3 AND version = ?4`
	dueSQL  = columns + `WHERE pipeline = ?1 AND due <= ?2 ORDER BY due LIMIT ?3`

	scanSQL = columns + `WHERE (pipeline, bucket, key, version) >= (?1, ?2, ?3, ?4)
		ORDER BY pipeline, bucket, key, version LIMIT ?5`
	scanToSQL = columns + `WHERE (pipeline, bucket, key, version) >= (?1, ?2, ?3, ?4)
		AND (pipeline, bucket, key, version) < (?6, ?7, ?8, ?9)
		ORDER BY pipeline, bucket, key, version LIMIT ?5`

	readRegisterSQL   = `SELECT name, version, value FROM register WHERE name = ?1`
	listRegistersSQL  = `SELECT name, version, value FROM register WHERE name >= ?1 ORDER BY name LIMIT 16`
	insertRegisterSQL = `INSERT INTO register (name, version, value) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
	updateRegisterSQL = `UPDATE register SET version = ?2, value = ?3 WHERE name = ?1 AND version = ?4`
	removeRegisterSQL = `DELETE FROM register WHERE name = ?1 AND version = ?2`
)
