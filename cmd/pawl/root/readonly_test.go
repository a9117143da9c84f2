package root

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/internal/fakes3"
	"github.com/pawlhq/pawl/proof/servertest"
)

const readOnlyConfig = `
ledger: %s
objects: {endpoint: %q, region: us-east-1, path_style: true}
pipelines: [{name: mirror, match: {bucket: photos}, copy: {to: s3://mirror/}}]
archives: [{name: clicks, kinesis: {stream: clicks, region: us-east-1}, to: s3://photos/clicks/}]
files: {to: s3://photos/files/, secret: "01234567890123456789012345678901", index: %q}
`

// readingCommands are the read-only commands, by the database that each reads.
var readingCommands = map[string]string{
	"status": "ledger", "ls": "ledger", "ls --count": "ledger", "explain s3://photos/a": "ledger", "ledger check": "ledger",
	"redrive --all --dry-run": "ledger", "purge --dry-run": "ledger", "audit --dry-run": "ledger", "audit --list": "ledger",
	"archive status": "ledger", "archive verify": "ledger",
	"files audit --dry-run": "index", "lock ls s3://photos/": "",
}

// The databases are missing, without Pawl's tables, or of older and newer formats. Errors must name the
// problem and the remedy.
func TestReadingCommandsChangeNothing(t *testing.T) {
	store := newReadOnlyStore(t)
	for kind, begin := range map[string]func(t *testing.T) func(state string) database{"sqlite": sqliteDatabases, "postgres": postgresDatabases} {
		t.Run(kind, func(t *testing.T) {
			create := begin(t)
			for _, state := range []string{"absent", "empty", "older", "newer"} {
				d := create(state)
				d.become(t, state)
				config := filepath.Join(d.dir, "pawl.yaml")
				if err := os.WriteFile(config, fmt.Appendf(nil, readOnlyConfig, d.ledger, store, d.index), 0o600); err != nil {
					t.Fatal(err)
				}
				before := d.snapshot(t)
				for command, reads := range readingCommands {
					var out bytes.Buffer
					args := append(strings.Fields(command), "-c", config)
					code := Main(t.Context(), args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
					if after := d.snapshot(t); !slices.Equal(before, after) {
						t.Fatalf("%s, %s: changed\n%s\nto\n%s", command, state, strings.Join(before, "\n"), strings.Join(after, "\n"))
					}
					checkRefusal(t, &d, command, reads, state, code, out.String())
				}
			}
		})
	}
}

func checkRefusal(t *testing.T, d *database, command, reads, state string, code int, out string) {
	t.Helper()
	empty := d.path != "" && state == "absent" && (strings.HasPrefix(command, "audit") || strings.HasPrefix(command, "purge"))
	if reads == "" || empty {
		if code != app.ExitDone {
			t.Errorf("%s, %s: exit code %d: %s", command, state, code, out)
		}
		return
	}
	says := map[string]string{
		"empty ledger": "tables", "empty index": "tables",
		"absent ledger": "pawl ", "older ledger": "docs/UPGRADING.md", "newer ledger": "pgrade",
		"absent index": `"pawl files serve"`, "older index": "pawl files rebuild", "newer index": "pgrade",
	}[state+" "+reads]
	if code == app.ExitDone || !strings.Contains(out, says) {
		t.Errorf("%s, %s: exit code %d, want an error that says %q: %s", command, state, code, says, out)
	}
}

func newReadOnlyStore(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(fakes3.New())
	t.Cleanup(srv.Close)
	for _, name := range []string{"photos", "mirror"} {
		req := httptest.NewRequest("PUT", srv.URL+"/"+name, nil)
		req.RequestURI = ""
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_EC2_METADATA_DISABLED": "true", "XDG_CACHE_HOME": t.TempDir()} {
		t.Setenv(name, value)
	}
	t.Setenv("AWS_ENDPOINT_URL", srv.URL)
	return srv.URL
}

type database struct {
	dir           string
	ledger, index string // URLs
	path          string // empty for PostgreSQL
}

func sqliteDatabases(t *testing.T) func(string) database {
	t.Helper()
	return func(string) database {
		dir := t.TempDir()
		return database{dir, "sqlite:pawl.db", "files.db", filepath.Join(dir, "pawl.db")}
	}
}

func postgresDatabases(t *testing.T) func(string) database {
	t.Helper()
	s := servertest.Postgres(t)
	return func(state string) database {
		s.Exec("CREATE DATABASE " + state)
		in := func(schema string) string {
			return s.URLWith(func(u *url.URL, p url.Values) {
				u.Path = "/" + state
				p.Set("schema", schema)
			})
		}
		return database{t.TempDir(), in("pawl"), in("files"), ""}
	}
}

func (d *database) become(t *testing.T, state string) {
	t.Helper()
	format := map[string]int{"older": 0, "newer": 99}[state]
	switch {
	case state == "absent":
	case state == "empty" && d.path == "":
		d.execute(t, `CREATE SCHEMA pawl; CREATE SCHEMA files`)
	case state == "empty":
		makeSQLite(t, d.path, ``)
		makeSQLite(t, filepath.Join(d.dir, d.index), ``)
	case d.path == "":
		d.execute(t, fmt.Sprintf(`CREATE SCHEMA pawl; CREATE TABLE pawl.format (version integer PRIMARY KEY, since timestamptz NOT NULL DEFAULT now());
			INSERT INTO pawl.format (version) VALUES (%[1]d);
			DO $$ BEGIN IF %[1]d = 0 THEN CREATE TABLE pawl.ledger (pipeline bytea); END IF; END $$;
			CREATE SCHEMA files;`, format))
		d.execute(t, map[string]string{
			"older": `CREATE TABLE files.file (id text, look_at timestamptz)`,
			"newer": `CREATE TABLE files.format (version integer PRIMARY KEY); INSERT INTO files.format VALUES (99)`,
		}[state])
	default:
		makeSQLite(t, d.path, fmt.Sprintf(`CREATE TABLE ledger (pipeline BLOB NOT NULL, bucket BLOB NOT NULL, key BLOB NOT NULL, version BLOB NOT NULL,
				nonce BLOB NOT NULL, due INTEGER, row TEXT NOT NULL, PRIMARY KEY (pipeline, bucket, key, version)) STRICT;
			CREATE INDEX ledger_due ON ledger (pipeline, due) WHERE due IS NOT NULL;
			PRAGMA application_id = 1348564844; PRAGMA user_version = %d;`, max(format, 1)))
		makeSQLite(t, filepath.Join(d.dir, d.index), fmt.Sprintf(`CREATE TABLE other (id TEXT);
			PRAGMA application_id = %d; PRAGMA user_version = %d;`, map[string]int{"older": 1350002281, "newer": 1348564844}[state], format))
	}
}

func makeSQLite(t *testing.T, path, script string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteScript(conn, script, nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

func (d *database) snapshot(t *testing.T) (all []string) {
	t.Helper()
	if d.path == "" {
		return d.execute(t, `SELECT n.nspname || '.' || c.relname || ' ' || c.relkind::text || coalesce(' ' || a.attname, '') FROM pg_namespace n
			LEFT JOIN pg_class c ON c.relnamespace = n.oid LEFT JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema' ORDER BY 1`)
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(d.dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %x", e.Name(), content))
	}
	return all
}

func (d *database) execute(t *testing.T, sql string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), strings.ReplaceAll(d.ledger, "schema=pawl", "application_name=test"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }() // at the end of the test
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (text string, err error) {
		var cell *string
		if err = row.Scan(&cell); cell != nil {
			text = *cell
		}
		return text, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
