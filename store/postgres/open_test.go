package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t, "max_connections=12")
	server.Exec(`
		CREATE ROLE reader LOGIN PASSWORD 'r';
		CREATE ROLE tenant LOGIN PASSWORD 't';
		CREATE SCHEMA fresh AUTHORIZATION tenant;
		CREATE SCHEMA ledger;
		CREATE TABLE ledger.ledger (pipeline bytea, bucket bytea);
		CREATE SCHEMA files;
		CREATE TABLE files.file (id text, look_at timestamptz)`)
	server.Exec(`CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
	openStore(t, server.URL)
	openStore(t, server.URLWith(inSchema("newer"))).must(t, "INSERT INTO newer.format (version) VALUES (99)")
	openStore(t, server.URLWith(inSchema("half"))).must(t, "DROP TABLE half.record")
	server.Exec(`GRANT USAGE ON SCHEMA pawl TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA pawl TO reader`)
	as := func(user, password string, edits ...func(*url.URL, url.Values)) string {
		return server.URLWith(func(u *url.URL, p url.Values) {
			u.User = url.UserPassword(user, password)
			for _, edit := range edits {
				edit(u, p)
			}
		})
	}
	database := func(name string) func(*url.URL, url.Values) { return func(u *url.URL, _ url.Values) { u.Path = name } }
	const moved = `: name another schema in the URL (schema=…), then audit each pipeline, and run "pawl archive recover" for archives and "pawl files rebuild" for files: see docs/UPGRADING.md`
	for _, tc := range []struct{ name, url, want string }{
		{"not a URL", "postgres://h:port/d", "write postgres://user:password@host:5432/database"},
		{"a torn password", "postgres://u:p@secret-/x%zz@h/d", "with %-escapes in the password"},
		{"half of the tables", server.URLWith(inSchema("half")), "drop its schema"},
		{"password", as("postgres", "wrong"), "rejects the password: correct the user or the password"},
		{"database", server.URLWith(database("/absent")), "does not exist: create the database (createdb)"},
		{"schema rights", as("tenant", "t"), `has tables that the user may not use: let this user work with them (GRANT USAGE ON SCHEMA "pawl" TO`},
		{"no right to make a schema", as("tenant", "t", inSchema("own")), "pawl ledger migrate --print"},
		{"table rights", as("reader", "r"), "lacks the privileges DELETE, INSERT, UPDATE on the table record"},
		{"newer", server.URLWith(inSchema("newer")), "has format 99, and this version supports formats up to 1: upgrade Pawl, or name another schema"},
		{"an old ledger", server.URLWith(inSchema("ledger")), "which this one cannot read (ledger)" + moved},
		{"an old index of files", server.URLWith(inSchema("files")), "which this one cannot read (file)" + moved},
		{"encoding", server.URLWith(database("/latin")), "encoding LATIN1: create a database with ENCODING 'UTF8'"},
		{"read-only", server.URLWith(func(_ *url.URL, p url.Values) { p.Set("default_transaction_read_only", "on") }), "is read-only, perhaps a replica: give the URL of the primary server"},
		{"no server", server.URLWith(func(u *url.URL, _ url.Values) { u.Host = "127.0.0.1:1" }), "cannot be reached: check host, port and network"},
	} {
		s, err := Open(t.Context(), tc.url)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: no error, want %q", tc.name, tc.want)
			continue
		}
		if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v: want ErrUnusable and %q", tc.name, err, tc.want)
		}
		if strings.Contains(err.Error(), "wrong@") || strings.Contains(err.Error(), "secret-") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v: want one line without a password", tc.name, err)
		}
	}
	openStore(t, as("tenant", "t", inSchema("fresh"))) // a schema is enough
	t.Run("full pool", func(t *testing.T) { testFullServer(t, as("tenant", "t", inSchema("fresh"))) })
}

func testFullServer(t *testing.T, url string) {
	for range 50 {
		s, err := Open(t.Context(), url)
		if err == nil {
			defer s.Close()
			continue
		}
		if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), "raise max_connections") {
			t.Errorf("%v: want max_connections named", err)
		}
		for err = error(nil); err == nil; { // the server closes connections with a delay
			s, dialed := dial(t.Context(), url)
			if dialed != nil {
				t.Fatal(dialed)
			}
			defer s.Close()
			_, err = s.Swap(t.Context(), []store.Change{insertion(newRecord("s", "a"))})
		}
		if !errors.Is(err, store.ErrThrottled) {
			t.Errorf("%v: want it throttled", err)
		}
		return
	}
	t.Error("the server has room for all")
}

func TestOpen(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t)
	t.Run("ReadOnly", func(t *testing.T) { testOpenReadOnly(t, server) })
	t.Run("MigratedByHand", func(t *testing.T) { testMigrationsByHand(t, server) })
	t.Run("Together", func(t *testing.T) { testMigrationsRace(t, server) })
}

func testOpenReadOnly(t *testing.T, server *servertest.PostgresServer) {
	if _, err := OpenReadOnly(t.Context(), server.URL); !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), "has no tables yet") {
		t.Errorf("%v: want no tables", err)
	}
	a := newRecord("s", "a")
	openStore(t, server.URL).insertAll(t, a)
	server.Exec(`CREATE ROLE reader LOGIN PASSWORD 'r'; GRANT USAGE ON SCHEMA pawl TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA pawl TO reader`)
	s, err := OpenReadOnly(t.Context(), server.URLWith(func(u *url.URL, _ url.Values) { u.User = url.UserPassword("reader", "r") }))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.load(t, a.Key); got == nil || *got != a {
		t.Errorf("%+v: want %+v", got, a)
	}
}

func testMigrationsByHand(t *testing.T, server *servertest.PostgresServer) {
	server.Exec(`CREATE ROLE tenant LOGIN PASSWORD 't'`)
	server.Exec(Migrations("mine", 0))
	server.Exec(`GRANT USAGE ON SCHEMA mine TO tenant; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mine TO tenant`)
	s := openStore(t, server.URLWith(func(u *url.URL, p url.Values) {
		u.User = url.UserPassword("tenant", "t")
		p.Set("schema", "mine")
	}))
	s.insertAll(t, newRecord("s", "a"))
}

func testMigrationsRace(t *testing.T, server *servertest.PostgresServer) {
	errs := make(chan error)
	const processes = 8
	for range processes {
		go func() {
			s, err := Open(t.Context(), server.URLWith(inSchema("together")))
			if err == nil {
				err = s.Close()
			}
			errs <- err
		}()
	}
	for range processes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t, "max_connections=8")
	problems := func(skew time.Duration) map[string]string {
		t.Helper()
		found, err := Check(t.Context(), server.URL, skew)
		if err != nil || len(found) != 6 {
			t.Fatalf("%d findings, %v", len(found), err)
		}
		wrong := map[string]string{}
		for _, f := range found {
			if f.Problem != "" {
				wrong[f.Name] = f.Problem
			}
		}
		return wrong
	}
	wrong := problems(time.Minute)
	for name, want := range map[string]string{"tables": "missing or old", "durability": "fsync=on", "connections": "too few"} {
		if !strings.Contains(wrong[name], want) {
			t.Errorf("%s: %q, want %q", name, wrong[name], want)
		}
	}
	openStore(t, server.URL)
	if wrong := problems(-time.Minute); wrong["tables"] != "" || !strings.Contains(wrong["clock"], "NTP") {
		t.Errorf("with tables, and clocks that are never near enough: %v", wrong)
	}
	server.Exec("CREATE TABLE pawl.ledger (pipeline bytea)")
	if wrong := problems(time.Minute); !strings.Contains(wrong["tables"], "cannot read (ledger)") {
		t.Errorf("with an old ledger: %v", wrong)
	}
}

// The error must not blame host and port.
func TestOpenTimesOut(t *testing.T) {
	t.Parallel()
	s := &Store{schema: DefaultSchema}
	err := s.explainOpen(t.Context(), errors.Join(errors.New("timeout"), context.DeadlineExceeded))
	if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), "another session keeps a table locked") {
		t.Error(err)
	}
}
