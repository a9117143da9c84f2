package pgledger

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger"
)

// What is wrong with a database is told at once: that it is unusable, and what to
// do.
func TestOpenRefuses(t *testing.T) {
	server := servertest.Postgres(t, "max_connections=12")
	server.Exec(`
		CREATE ROLE reader LOGIN PASSWORD 'r';
		CREATE ROLE tenant LOGIN PASSWORD 't';
		CREATE SCHEMA fresh AUTHORIZATION tenant`)
	server.Exec(`CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
	open(t, server.URL)
	newer := open(t, schema(server, "newer"))
	newer.must(t, "INSERT INTO newer.format (version) VALUES (99)")
	open(t, schema(server, "half")).must(t, "DROP TABLE half.ledger")
	server.Exec(`GRANT USAGE ON SCHEMA pawl TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA pawl TO reader`)
	as := func(user, password string, edits ...func(*url.URL, url.Values)) string {
		return server.With(func(u *url.URL, p url.Values) {
			u.User = url.UserPassword(user, password)
			for _, edit := range edits {
				edit(u, p)
			}
		})
	}
	set := func(name, value string) func(*url.URL, url.Values) {
		return func(_ *url.URL, p url.Values) { p.Set(name, value) }
	}
	path := func(path string) func(*url.URL, url.Values) { return func(u *url.URL, _ url.Values) { u.Path = path } }
	for _, tc := range []struct{ name, url, want string }{
		{"not a URL", "postgres://h:port/d", "write postgres://user:password@host:5432/database"},
		{"a torn password", "postgres://u:p@secret-/x%zz@h/d", "with %-escapes in the password"},
		{"half of the tables", schema(server, "half"), "drop what is left of its schema"},
		{"password", as("postgres", "wrong"), "refuses the password: correct the user or the password"},
		{"database", server.With(path("/absent")), "does not exist: make the database (createdb)"},
		{"schema rights", as("tenant", "t"), `has tables that the user may not use: let this user work with them (GRANT USAGE ON SCHEMA "pawl" TO`},
		{"no right to make a schema", as("tenant", "t", set("schema", "own")), "pawl ledger migrate --print"},
		{"table rights", as("reader", "r"), "lacks the privileges DELETE on ledger, INSERT on ledger, UPDATE on ledger, DELETE on register"},
		{"newer", schema(server, "newer"), "has format 99, and this Pawl knows none above 1: upgrade Pawl, or name another schema"},
		{"encoding", server.With(path("/latin")), "encoding LATIN1: make one with ENCODING 'UTF8'"},
		{"read-only", server.With(set("default_transaction_read_only", "on")), "is read-only, a replica perhaps: give the URL of the primary server"},
		{"nobody there", server.With(func(u *url.URL, _ url.Values) { u.Host = "127.0.0.1:1" }), "cannot be reached: check host, port and network"},
	} {
		s, err := Open(t.Context(), tc.url)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: no error, want %q", tc.name, tc.want)
			continue
		}
		if !errors.Is(err, ledger.ErrUnusable) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v: want it unusable, and %q", tc.name, err, tc.want)
		}
		if strings.Contains(err.Error(), "wrong@") || strings.Contains(err.Error(), "secret-") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: on one line, without a password: %v", tc.name, err)
		}
	}
	open(t, as("tenant", "t", set("schema", "fresh"))) // its own schema is enough
	t.Run("full pool", func(t *testing.T) { testFull(t, server) })
}

func testFull(t *testing.T, server *servertest.PostgresServer) {
	tenant := server.With(func(u *url.URL, p url.Values) {
		u.User = url.UserPassword("tenant", "t")
		p.Set("schema", "fresh")
	})
	// Connections of those who have left go away a little later.
	for range 50 {
		s, err := Open(t.Context(), tenant)
		if err != nil {
			if !errors.Is(err, ledger.ErrUnusable) || !strings.Contains(err.Error(), "raise max_connections") {
				t.Errorf("%v: want max_connections named", err)
			}
			return
		}
		defer s.Close()
	}
	t.Error("the server has room for all")
}

// A user without the right to make tables works with those that the script made.
func TestMigrationsByHand(t *testing.T) {
	server := servertest.Postgres(t)
	server.Exec(`CREATE ROLE tenant LOGIN PASSWORD 't'`)
	server.Exec(Migrations("mine", 0))
	server.Exec(`GRANT USAGE ON SCHEMA mine TO tenant; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mine TO tenant`)
	s := open(t, server.With(func(u *url.URL, p url.Values) {
		u.User = url.UserPassword("tenant", "t")
		p.Set("schema", "mine")
	}))
	if _, err := s.Swap(t.Context(), []ledger.Change{{Key: ledger.RowKey{Key: "k"}, Row: &ledger.Row{}}}); err != nil {
		t.Error(err)
	}
}

// Workers that start together make the tables once.
func TestMigrationsRace(t *testing.T) {
	server := servertest.Postgres(t)
	errs := make(chan error)
	const workers = 8
	for range workers {
		go func() {
			s, err := Open(t.Context(), server.URL)
			if err == nil {
				err = s.Close()
			}
			errs <- err
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestCheck(t *testing.T) {
	server := servertest.Postgres(t, "max_connections=8")
	find := func(skew time.Duration) map[string]string {
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
	wrong := find(time.Minute)
	for name, want := range map[string]string{"tables": "to be made", "durability": "fsync=on", "connections": "too few"} {
		if !strings.Contains(wrong[name], want) {
			t.Errorf("%s: %q, want %q", name, wrong[name], want)
		}
	}
	open(t, server.URL)
	if wrong := find(-time.Minute); wrong["tables"] != "" || !strings.Contains(wrong["clock"], "NTP") {
		t.Errorf("with tables, and clocks that are never near enough: %v", wrong)
	}
}

// A row that a newer Pawl wrote is that row's trouble.
func TestUnreadable(t *testing.T) {
	s := open(t, servertest.Postgres(t).URL)
	k := ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k"}
	row := &ledger.Row{RowKey: k, Nonce: ledger.Nonce{1}}
	if _, err := s.Swap(t.Context(), []ledger.Change{{Key: k, Row: row}}); err != nil {
		t.Fatal(err)
	}
	s.must(t, `UPDATE pawl.ledger SET body = '{"want":7}', due = now() - interval '1 day'`)
	rows, err := s.Load(t.Context(), []ledger.RowKey{k})
	if err != nil || len(rows) != 1 || rows[0].Unreadable == nil || rows[0].Nonce != row.Nonce {
		t.Errorf("Load: %+v, %v: want one that is unreadable", rows, err)
	}
	rows, err = s.Due(t.Context(), "p", time.Now(), 10)
	if err != nil || len(rows) != 1 || rows[0].Unreadable == nil {
		t.Errorf("Due: %+v, %v: want one that is unreadable", rows, err)
	}
	out, err := s.Swap(t.Context(), []ledger.Change{{Key: k, Row: row}})
	if err != nil || out[0].Applied || out[0].Current == nil || out[0].Current.Unreadable == nil {
		t.Errorf("Swap: %+v, %v: want to be refused by one that is unreadable", out, err)
	}
}

func open(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // never fails
	return s
}

func schema(s *servertest.PostgresServer, name string) string {
	return s.With(func(_ *url.URL, p url.Values) { p.Set("schema", name) })
}

func (s *Store) must(t *testing.T, sql string) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
