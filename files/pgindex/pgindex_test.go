package pgindex_test

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/indextest"
	"github.com/pawlhq/pawl/files/pgindex"
	"github.com/pawlhq/pawl/internal/servertest"
)

func open(t *testing.T, url string) *pgindex.Index {
	t.Helper()
	x, err := pgindex.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func in(schema string) func(*url.URL, url.Values) {
	return func(_ *url.URL, p url.Values) { p.Set("schema", schema) }
}

func Test(t *testing.T) {
	server := servertest.Postgres(t, "max_connections=300")
	t.Run("Index", func(t *testing.T) { testIndex(t, server) })
	t.Run("Open", func(t *testing.T) { testOpen(t, server) })
	t.Run("BeforeRelease", func(t *testing.T) { testBeforeRelease(t, server) })
	t.Run("Stuck", func(t *testing.T) { testStuck(t, server) })
	t.Run("Careless", func(t *testing.T) { testCareless(t, server) })
}

func testIndex(t *testing.T, server *servertest.PostgresServer) {
	var schemas atomic.Int64
	indextest.Run(t, func(t *testing.T) files.Index {
		return open(t, server.With(in(`Suite "`+strconv.FormatInt(schemas.Add(1), 10))))
	})
}

// testOpen: processes that start together make the tables once, and what is wrong
// with a database is said, without its password.
func testOpen(t *testing.T, server *servertest.PostgresServer) {
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() { open(t, server.URL) })
	}
	together.Wait()
	server.Exec(`
		CREATE ROLE tenant LOGIN PASSWORD 'secret-t';
		CREATE SCHEMA own AUTHORIZATION tenant;
		CREATE SCHEMA newer;
		CREATE TABLE newer.file_format (version integer);
		INSERT INTO newer.file_format VALUES (99)`)
	server.Exec(`CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
	as := func(edits ...func(*url.URL, url.Values)) string {
		return server.With(func(u *url.URL, p url.Values) {
			u.User = url.UserPassword("tenant", "secret-t")
			for _, edit := range edits {
				edit(u, p)
			}
		})
	}
	if _, err := pgindex.OpenExisting(t.Context(), as(in("own"))); err == nil || !strings.Contains(err.Error(), "there is no index yet") {
		t.Error(err)
	}
	open(t, as(in("own")))
	if x, err := pgindex.OpenExisting(t.Context(), as(in("own"))); err != nil {
		t.Error(err)
	} else if err := x.Close(); err != nil {
		t.Error(err)
	}
	for name, test := range map[string]struct{ url, want string }{
		"not a URL":  {"postgres://h:port/d", "write postgres://user:password@host:5432/database"},
		"its schema": {as(in("none")), "GRANT USAGE, CREATE ON SCHEMA"},
		"its tables": {as(), "GRANT USAGE, CREATE ON SCHEMA"},
		"newer":      {server.With(in("newer")), "have format 99, and this Pawl knows none above 1"},
		"encoding":   {server.With(func(u *url.URL, _ url.Values) { u.Path = "/latin" }), "encoding LATIN1"},
		"no server":  {as(func(u *url.URL, _ url.Values) { u.Host = "127.0.0.1:1" }), "opening the index at 127.0.0.1:1/postgres schema pawl"},
	} {
		_, err := pgindex.Open(t.Context(), test.url)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret-") {
			t.Errorf("%s: %v: want %q, and no password", name, err, test.want)
		}
	}
}

// testBeforeRelease: tables of format 1 that do not count open uploads are refused.
func testBeforeRelease(t *testing.T, server *servertest.PostgresServer) {
	url := server.With(in("before"))
	open(t, url)
	server.Exec(`
		DROP TABLE before.file_quota;
		CREATE TABLE before.file_quota (entity text COLLATE "C" PRIMARY KEY, used bigint NOT NULL)`)
	for name, open := range map[string]func(context.Context, string) (*pgindex.Index, error){"Open": pgindex.Open, "OpenExisting": pgindex.OpenExisting} {
		if _, err := open(t.Context(), url); err == nil || !strings.Contains(err.Error(), `cannot be upgraded: name a new schema`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// testCareless: a change waits for the disk, even where the database is set up not to.
func testCareless(t *testing.T, server *servertest.PostgresServer) {
	x := open(t, server.With(func(_ *url.URL, p url.Values) { p.Set("synchronous_commit", "off"); p.Set("schema", "careless") }))
	server.Exec(`
		CREATE FUNCTION careless.demand() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('synchronous_commit') = 'off' THEN RAISE 'careless'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER demand BEFORE INSERT OR UPDATE ON careless.file FOR EACH ROW EXECUTE FUNCTION careless.demand()`)
	f := files.File{ID: "a", Entity: "e", Key: "k", State: files.Pending, Nonce: files.Nonce{1}}
	if o, err := x.Apply(t.Context(), files.Change{Next: f}); err != nil || o.Result != files.Applied {
		t.Error(o, err)
	}
}

// testStuck: where a process has stopped in the middle of a change of one entity, the
// changes of others go on, and its own end soon.
func testStuck(t *testing.T, server *servertest.PostgresServer) {
	x := open(t, server.With(in("stuck")))
	change := func(entity string, n int) error {
		f := files.File{ID: entity + strconv.Itoa(n), Entity: entity, Key: entity + strconv.Itoa(n), State: files.Pending, Nonce: files.Nonce{1}}
		_, err := x.Apply(t.Context(), files.Change{Next: f, Add: files.Usage{Bytes: 1}, Limit: files.Usage{Bytes: 100}})
		return err
	}
	conn, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('pawl files "stuck" e', 0))`); err != nil {
		t.Fatal(err)
	}
	var stuck sync.WaitGroup
	for i := range 8 {
		stuck.Go(func() {
			if err := change("e", i); err == nil || !strings.Contains(err.Error(), "lock timeout") && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: want that it does not get the lock", err)
			}
		})
	}
	for i := range 20 {
		began := time.Now()
		if err := change("other", i); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("%v, after %s", err, time.Since(began))
		}
	}
	stuck.Wait()
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := change("e", 8); err != nil {
		t.Error(err)
	}
}
