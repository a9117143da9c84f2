package postgres

// statements are those of one schema.
type statements struct {
	insert, update, remove, load, due, scan, lock, put string
}

func statementsIn(schema string) statements {
	return statements{
		insert: withSchema(schema, insertSQL), update: withSchema(schema, updateSQL), remove: withSchema(schema, deleteSQL),
		load: withSchema(schema, loadSQL), due: withSchema(schema, dueSQL), scan: withSchema(schema, scanSQL),
		lock: withSchema(schema, lockSQL), put: withSchema(schema, putSQL),
	}
}

const (
	// beginSQL and settingsSQL begin each transaction that writes. Together they hold
	// whatever the defaults of the database: records are compared as they are, not as
	// they were; each change is looked up by its key, in the order of keys; an answer
	// follows the write to the disk; and neither a lock of another session nor a pause
	// of this process holds up the others for long.
	beginSQL    = `BEGIN ISOLATION LEVEL READ COMMITTED`
	settingsSQL = `SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
		set_config('enable_seqscan', 'off', true), set_config('lock_timeout', '5s', true),
		set_config('idle_in_transaction_session_timeout', '5s', true),
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)`

	insertSQL = `INSERT INTO {}.record (space, name, nonce, due, body)
		SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::uuid[], $4::timestamptz[], $5::text[])
		ON CONFLICT DO NOTHING RETURNING space, name`
	updateSQL = `UPDATE {}.record r SET nonce = c.nonce, due = c.due, body = c.body
		FROM unnest($1::bytea[], $2::bytea[], $3::uuid[], $4::timestamptz[], $5::text[], $6::uuid[])
			WITH ORDINALITY AS c (space, name, nonce, due, body, expect, place)
		WHERE r.space = c.space AND r.name = c.name AND r.nonce = c.expect
		RETURNING c.place`
	deleteSQL = `DELETE FROM {}.record r
		USING unnest($1::bytea[], $2::bytea[], $3::uuid[])
			WITH ORDINALITY AS c (space, name, expect, place)
		WHERE r.space = c.space AND r.name = c.name AND r.nonce = c.expect
		RETURNING c.place`

	columns = `r.space, r.name, r.nonce, r.due, r.body`

	// OFFSET 0 makes the server look up each key by itself.
	loadSQL = `SELECT ` + columns + ` FROM unnest($1::bytea[], $2::bytea[]) AS c (space, name)
		CROSS JOIN LATERAL (SELECT * FROM {}.record r WHERE r.space = c.space AND r.name = c.name OFFSET 0) r`
	// orderSQL goes before a read in order, in its transaction: the server then reads an
	// index in that order, even if it has no statistics of the table.
	orderSQL = `SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)`

	dueSQL = `SELECT ` + columns + ` FROM {}.record r WHERE space = $1 AND due <= $2 AND (due, name) > ($3, $4)
		ORDER BY due, name LIMIT $5 OFFSET $6`
	// scanSQL lacks its upper bound and its order.
	scanSQL = `SELECT ` + columns + ` FROM {}.record r WHERE space = $1 AND name > $2`

	// isolationSQL also bounds how long a process that pauses, or is cut off, keeps the
	// record locked: swaps of the record wait meanwhile, with their batches.
	isolationSQL = `SELECT current_setting('transaction_isolation') FROM set_config('idle_in_transaction_session_timeout', '5s', true)`
	lockSQL      = `SELECT ` + columns + ` FROM {}.record r WHERE space = $1 AND name = $2 FOR UPDATE`
	putSQL       = `UPDATE {}.record SET nonce = $3, due = $4, body = $5 WHERE space = $1 AND name = $2 AND nonce = $6`
)
