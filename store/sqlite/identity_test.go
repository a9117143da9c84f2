package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/pawlhq/pawl/store"
)

func TestMissingFile(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"Deleted": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"LogDeleted": func(t *testing.T, path string) {
			if err := os.Remove(path + "-wal"); err != nil {
				t.Fatal(err)
			}
		},
		"LogReplaced": func(t *testing.T, path string) {
			b, err := os.ReadFile(path + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path + "-wal"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+"-wal", b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"Moved": func(t *testing.T, path string) {
			if err := os.Rename(path, path+".old"); err != nil {
				t.Fatal(err)
			}
		},
		"Replaced": func(t *testing.T, path string) {
			filled(t, path+".new")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t)
			batch := records(4)
			if _, err := s.Swap(t.Context(), batch[:2]); err != nil {
				t.Fatal(err)
			}
			spoil(t, s.path)
			for call, err := range everyCall(t, s, batch[2:]) {
				if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), s.path) || !strings.Contains(err.Error(), "moved, deleted or replaced") {
					t.Errorf("%s: error %v, want ErrUnusable and a text about the moved file", call, err)
				}
			}
			if _, err := os.Stat(s.path); (name == "Moved" || name == "Deleted") && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a new file was made (%v)", err)
			}
		})
	}
}

func everyCall(t *testing.T, s *Store, batch []store.Change) map[string]error {
	t.Helper()
	errs := map[string]error{}
	_, errs["swap"] = s.Swap(t.Context(), batch)
	_, errs["apply"] = s.Apply(t.Context(), batch)
	errs["write"] = s.Write(t.Context(), func(*sqlite.Conn) error { return nil })
	_, errs["load"] = s.Load(t.Context(), []store.Key{batch[0].Key})
	_, errs["due"] = s.Due(t.Context(), store.DueRange{Space: "s", Before: time.Now(), Limit: 10})
	for _, err := range s.Scan(t.Context(), store.Range{Space: "s"}) {
		errs["scan"] = err
	}
	return errs
}

func TestFileDeletedDuringCall(t *testing.T) {
	s := openTest(t)
	err := s.Write(t.Context(), func(*sqlite.Conn) error { return os.Remove(s.path) })
	if !errors.Is(err, store.ErrUnusable) {
		t.Errorf("Write: error %v", err)
	}
	s = openTest(t)
	err = s.read(t.Context(), "read", func(*sqlite.Conn) error { return os.Remove(s.path) })
	if !errors.Is(err, store.ErrUnusable) {
		t.Errorf("read: error %v", err)
	}
}

func TestFileBehindLink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "link.db")
	filled(t, filepath.Join(dir, "pawl.db"))
	if err := os.Symlink("pawl.db", path); err != nil {
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
	if n := count(t, s); n != 500 {
		t.Errorf("%d records, want 500", n)
	}
}
