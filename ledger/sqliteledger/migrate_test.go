package sqliteledger

import (
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/ledger"
)

// A file of the first format is read, and gets registers.
func TestMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	conn, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	err = sqlitex.ExecuteScript(conn, schema.Migrations[0]+`
		PRAGMA application_id = 1348564844; PRAGMA user_version = 1;
		INSERT INTO ledger VALUES (CAST('p' AS BLOB), CAST('b' AS BLOB), CAST('1' AS BLOB), x'', x'00112233445566778899aabbccddeeff', NULL,
			'{"want":{"gen":2},"doubt":"look","last_error":"\"doubt\":\"look\"","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}');
		INSERT INTO ledger VALUES (CAST('p' AS BLOB), CAST('b' AS BLOB), CAST('2' AS BLOB), x'', x'00112233445566778899aabbccddeeff', NULL,
			'{"want":{"gen":2},"doubt":"act","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}');`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	rows, err := s.Load(t.Context(), []ledger.RowKey{{Pipeline: "p", Bucket: "b", Key: "1"}, {Pipeline: "p", Bucket: "b", Key: "2"}})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if r := rows[0]; !r.Doubt || r.Forced || r.LastError != `"doubt":"look"` {
		t.Errorf("%+v: want a doubt, and the error as it was", r)
	}
	if r := rows[1]; r.Doubt || !r.Forced {
		t.Errorf("%+v: want it forced", r)
	}
	if _, err := s.WriteRegister(t.Context(), "a", "", nil); err != nil {
		t.Error(err)
	}
}
