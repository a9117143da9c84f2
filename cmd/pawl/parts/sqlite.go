package parts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

// SQLite is a ledger in a file: sqlite:FILE.
type SQLite struct {
	// Absolute path of the file.
	Path string `yaml:"path"`
}

func parseSQLite(path, dir string) (SQLite, error) {
	if path == "" {
		return SQLite{}, errors.New("names no file: write sqlite:FILE")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path, err := filepath.Abs(path)
	return SQLite{path}, err
}

// Open implements [Ledger].
func (s SQLite) Open(ctx context.Context) (store.Store, error) {
	return sqlite.Open(ctx, s.Path)
}

// OpenReadOnly implements [Ledger].
func (s SQLite) OpenReadOnly(ctx context.Context) (store.Store, error) {
	if err := s.CheckExists(ctx); err != nil {
		return nil, err
	}
	return sqlite.OpenReadOnly(ctx, s.Path)
}

// CheckExists implements [Ledger].
func (s SQLite) CheckExists(context.Context) error {
	if _, err := os.Stat(s.Path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(`no ledger at %q: "pawl run" or "pawl archive run" creates it`, s.Path)
	}
	return nil
}

// Describe implements [Ledger].
func (s SQLite) Describe() string { return "sqlite:" + s.Path }
