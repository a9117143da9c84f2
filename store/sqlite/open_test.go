package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/store"
)

func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string) // creates the file at path
		say  string
	}{
		{"NotADatabase", textFile, "is not a database"},
		{"HeaderDamaged", damage(0, 100), "is not a database"},
		{"SchemaDamaged", damage(100, 300), "is damaged"},
		{"PageDamaged", damage(10*4096, 4096), "is damaged"},
		{"Truncated", truncated, "is damaged"},
		{"Folder", folder, "is not a regular file"},
		{"Device", device, "is not a regular file"},
		{"OtherApplication", script("PRAGMA application_id = 7; CREATE TABLE t (x)"), "another application"},
		{"NoApplication", script("CREATE TABLE t (x)"), "another application"},
		{"NewerFormat", marked(applicationID, format+1), "upgrade Pawl"},
		{"LedgerOfFormat1", marked(applicationID, 1), "docs/UPGRADING.md"},
		{"LedgerOfFormat2", marked(applicationID, 2), "pawl archive recover"},
		{"FileIndex", marked(filesID, 2), "pawl files rebuild"},
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
	refused(t, filepath.Join(dir, "absent", "pawl.db"), "create the folder first")
	refused(t, filepath.Join(dir, "file", "pawl.db"), "create the folder first")
	refused(t, "", "is not a regular file")
}

func refused(t *testing.T, path, say string) {
	t.Helper()
	s, err := open(t.Context(), path, 50*time.Millisecond, false)
	if err == nil {
		t.Error("opened", s.Close())
		return
	}
	if !errors.Is(err, store.ErrUnusable) {
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

func filled(t *testing.T, path string) {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap(t.Context(), records(500)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func records(n int) []store.Change {
	changes := make([]store.Change, n)
	for i := range changes {
		k := store.Key{Space: "s", Name: fmt.Sprintf("%06d", i)}
		changes[i] = store.Change{Key: k, Next: &store.Record{
			Key: k, Nonce: store.Nonce{1, byte(i), byte(i >> 8)}, Due: time.UnixMilli(1772366400000).UTC(), Body: strings.Repeat("x", 700),
		}}
	}
	return changes
}

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

func marked(id, version int) func(*testing.T, string) {
	return script(fmt.Sprintf("CREATE TABLE t (x); PRAGMA application_id = %d; PRAGMA user_version = %d", id, version))
}

func TestOpenLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	filled(t, path)
	unlock := lockElsewhere(t, path)
	quickest := lockWait // the machine may pause during one of the tries
	for range 3 {
		start := time.Now()
		refused(t, path, "is locked by another process")
		quickest = min(quickest, time.Since(start))
	}
	if quickest > lockWait/2 {
		t.Errorf("waited %v", quickest)
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
	if _, err := Open(ctx, path); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnusable) {
		t.Errorf("error %v, want context.DeadlineExceeded alone", err)
	}
}

func TestConcurrentOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := openPatient(t.Context(), path)
			if err != nil {
				t.Errorf("opener %d: %v", i, err)
				return
			}
			defer s.Close()
			if out, err := s.Swap(t.Context(), records(10)[i:i+1]); err != nil || !out[0].Applied {
				t.Errorf("opener %d: %+v, %v", i, out, err)
			}
		})
	}
	wg.Wait()
}

func TestOpenOddPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"a b.db", "a?mode=memory", "file:x.db", ":memory:", "#%20", "é"} {
		filled(t, path)
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// An administrator may create an empty file to set its owner.
func TestOpenEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	filled(t, path)
}

func TestOpenReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	if _, err := OpenReadOnly(t.Context(), path); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, store.ErrUnusable) {
		t.Errorf("no file: error %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), "no tables") {
		t.Errorf("empty file: error %v", err)
	}
	filled(t, path)
	s, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := count(t, s); n != 500 {
		t.Errorf("%d records, want 500", n)
	}
	_, swapErr := s.Swap(t.Context(), records(1))
	_, applyErr := s.Apply(t.Context(), records(1))
	writeErr := s.Write(t.Context(), func(*sqlite.Conn) error { return nil })
	for _, err := range []error{swapErr, applyErr, writeErr} {
		if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), "for reading only") {
			t.Errorf("error %v", err)
		}
	}
}

// A copy by VACUUM INTO has no write-ahead log.
func TestOpenReadOnlyBackup(t *testing.T) {
	path, backup := filepath.Join(t.TempDir(), "pawl.db"), filepath.Join(t.TempDir(), "backup.db")
	filled(t, path)
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlitex.ExecuteTransient(conn, "VACUUM INTO '"+backup+"'", nil), conn.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := OpenReadOnly(t.Context(), backup)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, s); n != 500 {
		t.Errorf("%d records, want 500", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(backup + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading created a log: %v", err)
	}
}
