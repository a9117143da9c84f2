package servertest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// PostgresServer is a PostgreSQL server of one test.
type PostgresServer struct {
	// URL connects as the superuser.
	URL string

	t        testing.TB
	bin, dir string
	addr     string
	settings []string
	current  *pgProcess
}

type pgProcess struct {
	cmd    *exec.Cmd
	out    output
	exited chan struct{}
}

// Postgres starts a PostgreSQL server with settings like "max_connections=5". Writes are durable
// only with "fsync=on".
func Postgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	bin, err := toolcache.FindPostgres()
	require(t, err)
	// The account of the server needs access.
	dir, err := os.MkdirTemp(sharedTempDir(), "pawl-pg-")
	if err != nil {
		t.Fatal(err)
	}
	s := &PostgresServer{t: t, bin: bin, dir: dir, settings: settings}
	t.Cleanup(func() {
		s.Stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the data of PostgreSQL: %v", err)
		}
	})
	password := secret()
	s.initialise(password)
	if s.addr, err = FreeAddress(); err != nil {
		t.Fatal(err)
	}
	s.URL = (&url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: s.addr, Path: "/postgres", RawQuery: "sslmode=disable"}).String()
	s.Start()
	return s
}

// The temporary folder of root may be private.
func sharedTempDir() string {
	if os.Getuid() == 0 {
		return "/tmp"
	}
	return ""
}

func (s *PostgresServer) initialise(password string) {
	s.t.Helper()
	pass := filepath.Join(s.dir, "password")
	if err := os.WriteFile(pass, []byte(password), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if u := serverUser(); u != nil {
		for _, name := range []string{s.dir, pass} {
			if err := os.Chown(name, u.uid, u.gid); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	cmd := s.command(filepath.Join(s.bin, "initdb"), "-D", filepath.Join(s.dir, "data"), "-U", "postgres", "--no-sync",
		"-A", "scram-sha-256", "--pwfile", pass, "-E", "UTF8", "--locale=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("initdb: %v\n%s", err, out)
	}
}

func (s *PostgresServer) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = s.dir, environment(s.dir)
	DieWithParent(cmd)
	if u := serverUser(); u != nil {
		runAsUser(cmd, u.uid, u.gid)
	}
	return cmd
}

// Start starts the server at the same address.
func (s *PostgresServer) Start() {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(s.addr)
	args := []string{"-D", filepath.Join(s.dir, "data"), "-p", port, "-c", "listen_addresses=" + host, "-k", s.dir, "-c", "fsync=off"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	p := &pgProcess{cmd: s.command(filepath.Join(s.bin, "postgres"), args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		s.t.Fatalf("start PostgreSQL: %v", err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	s.current = p
	// Not the test's context: a cleanup function may restart a server.
	err := poll(context.Background(), p.exited, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.URL)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		s.t.Fatalf("start PostgreSQL: %v; output:\n%s", err, p.out.String())
	}
}

// Stop stops the server immediately, as a crash does.
func (s *PostgresServer) Stop() {
	p := s.current
	if p == nil {
		return
	}
	s.current = nil
	_ = stopImmediately(p.cmd.Process)
	select {
	case <-p.exited:
	case <-time.After(startTimeout):
		s.t.Errorf("PostgreSQL does not stop; output:\n%s", p.out.String())
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

type account struct{ uid, gid int }

// PostgreSQL refuses to run as root. Nil means the current user.
func serverUser() *account {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return &account{65534, 65534}
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &account{uid, gid}
}

// Exec runs statements as the superuser.
func (s *PostgresServer) Exec(sql string) {
	s.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL)
	if err == nil {
		_, err = conn.Exec(ctx, sql)
		_ = conn.Close(ctx)
	}
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// URLWith returns the URL with changed parts.
func (s *PostgresServer) URLWith(edit func(u *url.URL, parameters url.Values)) string {
	u, err := url.Parse(s.URL)
	if err != nil {
		panic(fmt.Sprintf("parse our own URL: %v", err))
	}
	parameters := u.Query()
	edit(u, parameters)
	u.RawQuery = parameters.Encode()
	return u.String()
}
