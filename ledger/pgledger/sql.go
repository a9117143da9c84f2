package pgledger

// statements are those of one schema.
type statements struct {
	insert, update, remove, load, due, scan, scanTo, lock                            string
	readRegister, listRegisters, insertRegister, updateRegister, removeRegister, put string
}

func statementsIn(schema string) statements {
	return statements{
		insert: in(schema, insertSQL), update: in(schema, updateSQL), remove: in(schema, deleteSQL),
		load: in(schema, loadSQL), due: in(schema, dueSQL), scan: in(schema, scanSQL), scanTo: in(schema, scanToSQL),
		lock: in(schema, lockSQL), put: in(schema, putSQL),
		readRegister: in(schema, readRegisterSQL), listRegisters: in(schema, listRegistersSQL),
		insertRegister: in(schema, insertRegisterSQL), updateRegister: in(schema, updateRegisterSQL),
		removeRegister: in(schema, removeRegisterSQL),
	}
}

const (
	// settingsSQL goes before what is written, in its transaction. The changes are
	// looked up one by one, whatever the statistics say of the table; what was answered
	// for is on the disk, even where the database is set up to be careless; and a row
	// that another session keeps locked is named as the reason.
	settingsSQL = `SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
		set_config('enable_seqscan', 'off', true), set_config('lock_timeout', '5s', true),
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)`

	insertSQL = `INSERT INTO {}.ledger (pipeline, bucket, key, version, nonce, due, body)
		SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::uuid[], $6::timestamptz[], $7::text[])
		ON CONFLICT DO NOTHING RETURNING nonce`
	updateSQL = `UPDATE {}.ledger l SET nonce = c.nonce, due = c.due, body = c.body
		FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::uuid[], $6::timestamptz[], $7::text[], $8::uuid[])
			WITH ORDINALITY AS c (pipeline, bucket, key, version, nonce, due, body, expect, place)
		WHERE l.pipeline = c.pipeline AND l.bucket = c.bucket AND l.key = c.key AND l.version = c.version AND l.nonce = c.expect
		RETURNING c.place`
	deleteSQL = `DELETE FROM {}.ledger l
		USING unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::uuid[])
			WITH ORDINALITY AS c (pipeline, bucket, key, version, expect, place)
		WHERE l.pipeline = c.pipeline AND l.bucket = c.bucket AND l.key = c.key AND l.version = c.version AND l.nonce = c.expect
		RETURNING c.place`

	columns = `l.pipeline, l.bucket, l.key, l.version, l.nonce, l.body`
	byKey   = `l.pipeline = $1 AND l.bucket = $2 AND l.key = $3 AND l.version = $4`

	// OFFSET 0 has each key looked up by itself.
	loadSQL = `SELECT ` + columns + ` FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[]) AS c (pipeline, bucket, key, version)
		CROSS JOIN LATERAL (SELECT * FROM {}.ledger l
			WHERE l.pipeline = c.pipeline AND l.bucket = c.bucket AND l.key = c.key AND l.version = c.version OFFSET 0) l`
	// lockSQL also bounds how long a worker that pauses, or is cut off, keeps the row
	// locked: swaps of the row wait meanwhile, with their batches.
	lockSQL = `SELECT ` + columns + ` FROM {}.ledger l, set_config('idle_in_transaction_session_timeout', '5s', true)
		WHERE ` + byKey + ` FOR UPDATE OF l`
	putSQL = `UPDATE {}.ledger l SET nonce = $5, due = $6, body = $7 WHERE ` + byKey + ` AND l.nonce = $8`

	// dueSQL takes a run of $3 rows, at random, out of the oldest $4.
	dueSQL = `SELECT ` + columns + ` FROM {}.ledger l WHERE pipeline = $1 AND due <= $2 ORDER BY due LIMIT $3
		OFFSET (SELECT floor(random() * greatest(count(*) - $3 + 1, 1))::bigint FROM
			(SELECT FROM {}.ledger WHERE pipeline = $1 AND due <= $2 ORDER BY due LIMIT $4) oldest)`

	scanSQL = `SELECT ` + columns + ` FROM {}.ledger l WHERE (pipeline, bucket, key, version) >= ($1, $2, $3, $4)
		ORDER BY pipeline, bucket, key, version LIMIT $5`
	scanToSQL = `SELECT ` + columns + ` FROM {}.ledger l WHERE (pipeline, bucket, key, version) >= ($1, $2, $3, $4)
		AND (pipeline, bucket, key, version) < ($6, $7, $8, $9)
		ORDER BY pipeline, bucket, key, version LIMIT $5`

	readRegisterSQL   = `SELECT name, version, value FROM {}.register WHERE name = $1`
	listRegistersSQL  = `SELECT name, version, value FROM {}.register WHERE name >= $1 ORDER BY name LIMIT 16`
	insertRegisterSQL = `INSERT INTO {}.register (name, version, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	updateRegisterSQL = `UPDATE {}.register SET version = $2, value = $3 WHERE name = $1 AND version = $4`
	removeRegisterSQL = `DELETE FROM {}.register WHERE name = $1 AND version = $2`
)
