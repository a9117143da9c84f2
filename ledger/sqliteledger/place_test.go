package sqliteledger

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// What is written to a file that is not in its place is lost when the process
// ends, so no call may say that it was done.
func TestFileThatIsGone(t *testing.T) {
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
			batch := rows(t, 4)
			if _, err := s.Swap(t.Context(), batch[:2]); err != nil {
				t.Fatal(err)
			}
			spoil(t, s.path)
			for call, err := range everyCall(t, s, batch[2:]) {
				if !errors.Is(err, ledger.ErrUnusable) || !strings.Contains(err.Error(), s.path) || !strings.Contains(err.Error(), "moved, deleted or replaced") {
					t.Errorf("%s: error %v, want one that says that the file is gone", call, err)
				}
			}
			if _, err := os.Stat(s.path); (name == "Moved" || name == "Deleted") && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a new file was made (%v)", err)
			}
		})
	}
}

func everyCall(t *testing.T, s *Store, batch []ledger.Change) map[string]error {
	t.Helper()
	errs := map[string]error{}
	_, errs["swap"] = s.Swap(t.Context(), batch)
	_, errs["ledger"] = ledger.New(s).Swap(t.Context(), batch) // does not try for ever
	_, errs["load"] = s.Load(t.Context(), []ledger.RowKey{batch[0].Key})
	_, errs["due"] = s.Due(t.Context(), "p", time.Now(), 10)
	for _, err := range s.Scan(t.Context(), ledger.Range{}) {
		errs["scan"] = err
	}
	return errs
}

// The last look comes after the commit: what was deleted in the middle of a
// call is not answered for.
func TestFileThatGoesMeanwhile(t *testing.T) {
	s := openTest(t)
	err := s.inPlace(func() error { return os.Remove(s.path) })
	if !errors.Is(err, ledger.ErrUnusable) {
		t.Errorf("error %v", err)
	}
}

// A link to the file may be as it likes, as long as it leads there.
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
		t.Errorf("%d rows, want 500", n)
	}
}
