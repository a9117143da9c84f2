package postgres

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
	// READ COMMITTED compares a change with the current record, not with a snapshot. The plan looks
	// up each change by its key, in key order. COMMIT waits for the disk. Locks of other sessions,
	// and pauses of this process, delay others for seconds at most.
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

	// OFFSET 0 forces a separate lookup of each key.
	loadSQL = `SELECT ` + columns + ` FROM unnest($1::bytea[], $2::bytea[]) AS c (space, name)
		CROSS JOIN LATERAL (SELECT * FROM {}.record r WHERE r.space = c.space AND r.name = c.name OFFSET 0) r`
	// orderSQL makes the server read an index in order, even without statistics of the table.
	orderSQL = `SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)`

	dueSQL = `SELECT ` + columns + ` FROM {}.record r WHERE space = $1 AND due <= $2 AND (due, name) > ($3, $4)
		ORDER BY due, name LIMIT $5 OFFSET $6`
	scanSQL = `SELECT ` + columns + ` FROM {}.record r WHERE space = $1 AND name > $2`

	// isolationSQL also bounds how long a paused or disconnected process keeps the record locked.
	isolationSQL = `SELECT current_setting('transaction_isolation') FROM set_config('idle_in_transaction_session_timeout', '5s', true)`
	lockSQL      = `SELECT ` + columns + ` FROM {}.record r WHERE space = $1 AND name = $2 FOR UPDATE`
	putSQL       = `UPDATE {}.record SET nonce = $3, due = $4, body = $5 WHERE space = $1 AND name = $2 AND nonce = $6`
)
