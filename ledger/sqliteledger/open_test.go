package sqliteledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/ledger"
)

// A file that cannot serve is refused at once, by name, with what to do, and is
// left as it was.
func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string) // makes what lies at path
		say  string
	}{
		{"NotADatabase", textFile, "is not a ledger"},
		{"HeaderDamaged", damage(0, 100), "is not a ledger"},
		{"SchemaDamaged", damage(100, 300), "is damaged"},
		{"PageDamaged", damage(10*4096, 4096), "is damaged"},
		{"Truncated", truncated, "is damaged"},
		{"Folder", folder, "is not a regular file"},
		{"Device", device, "is not a regular file"},
		{"OtherApplication", script("PRAGMA application_id = 7; CREATE TABLE t (x)"), "another application"},
		{"NoApplication", script("CREATE TABLE t (x)"), "another application"},
		{"NewerFormat", newer, "upgrade Pawl"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pawl.db")
			test.make(t, path)
			before, _ := os.ReadFile(path) // a folder has no content
			refused(t, path, test.say)
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenRefusesPlace(t *testing.T) {
	dir := t.TempDir()
	textFile(t, filepath.Join(dir, "file"))
	refused(t, filepath.Join(dir, "absent", "pawl.db"), "make the folder first")
	refused(t, filepath.Join(dir, "file", "pawl.db"), "make the folder first")
	refused(t, "", "is not a regular file")
}

// refused wants path to be refused by an error that names it and says so.
func refused(t *testing.T, path, say string) {
	t.Helper()
	s, err := open(t.Context(), path, 50*time.Millisecond, false)
	if err == nil {
		t.Error("opened", s.Close())
		return
	}
	if !errors.Is(err, ledger.ErrUnusable) {
		t.Errorf("%v: does not wrap ErrUnusable", err)
	}
	if !strings.Contains(err.Error(), say) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v: want it to name %q and say %q", err, path, say)
	}
	t.Log(err)
}

func textFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Repeat("this is not a database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func device(t *testing.T, path string) {
	t.Helper()
	if err := os.Symlink(os.DevNull, path); err != nil {
		t.Fatal(err)
	}
}

// filled makes a proper ledger of several dozen pages.
func filled(t *testing.T, path string) {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap(t.Context(), rows(t, 500)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func rows(t *testing.T, n int) []ledger.Change {
	t.Helper()
	changes := make([]ledger.Change, n)
	for i := range changes {
		k := ledger.RowKey{Pipeline: "p", Bucket: "b", Key: fmt.Sprintf("%06d", i)}
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		changes[i] = ledger.Change{Key: k, Row: &ledger.Row{
			RowKey: k, Nonce: ledger.Nonce{1, byte(i), byte(i >> 8)}, Want: ledger.Version{Generation: 1},
			LastError: strings.Repeat("x", 500), CreatedAt: now, UpdatedAt: now,
		}}
	}
	return changes
}

// damage overwrites n bytes at an offset of a proper ledger.
func damage(at, n int) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		filled(t, path)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copy(b[at:at+n], bytes.Repeat([]byte{0xa5}, n))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func truncated(t *testing.T, path string) {
	t.Helper()
	filled(t, path)
	if err := os.Truncate(path, 5*4096+17); err != nil {
		t.Fatal(err)
	}
}

// script makes a database that is not ours.
func script(sql string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(sqlitex.ExecuteScript(conn, sql, nil), conn.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func newer(t *testing.T, path string) {
	t.Helper()
	filled(t, path)
	script(fmt.Sprintf("PRAGMA user_version = %d", len(schema.Migrations)+9))(t, path)
}

// A locked file is waited for, and then refused.
func TestOpenLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	filled(t, path)
	unlock := lockElsewhere(t, path)
	start := time.Now()
	refused(t, path, "is locked by another process")
	if waited := time.Since(start); waited > 5*time.Second {
		t.Errorf("waited %v", waited)
	}

	opened := make(chan error)
	go func() {
		s, err := Open(t.Context(), path)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	unlock()
	if err := <-opened; err != nil {
		t.Errorf("after unlocking: %v", err)
	}
}

func TestOpenCancelled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	filled(t, path)
	lockElsewhere(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, path); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ledger.ErrUnusable) {
		t.Errorf("error %v, want context.DeadlineExceeded alone", err)
	}
}

// Many may make the file at once.
func TestOpenTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Errorf("opener %d: %v", i, err)
				return
			}
			defer s.Close()
			if out, err := s.Swap(t.Context(), rows(t, 10)[i:i+1]); err != nil || !out[0].Applied {
				t.Errorf("opener %d: %+v, %v", i, out, err)
			}
		})
	}
	wg.Wait()
}

// A path is a path, whatever SQLite would make of it.
func TestOpenOddPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"a b.db", "a?mode=memory", "file:x.db", ":memory:", "#%20", "é"} {
		filled(t, path)
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// An empty file is what a person makes who wants to set its owner first.
func TestOpenEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	filled(t, path)
}
