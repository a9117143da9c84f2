package parts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/sqliteledger"
)

// SQLite is a ledger in a file: sqlite:FILE.
type SQLite struct {
	// Path of the file. A relative one counts from the working directory.
	Path string `yaml:"path"`
}

func parseSQLite(path string) (SQLite, error) {
	if path == "" {
		return SQLite{}, errors.New("names no file: write sqlite:FILE")
	}
	return SQLite{path}, nil
}

// Open implements [Ledger].
func (s SQLite) Open(ctx context.Context) (ledger.Store, error) {
	return sqliteledger.Open(ctx, s.Path)
}

// Look implements [Ledger].
func (s SQLite) Look(context.Context) error {
	if _, err := os.Stat(s.Path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(`there is no ledger at %s: "pawl run" makes it; a relative file name counts from the working directory`,
			event.Quote(s.Path))
	}
	return nil
}

// Describe implements [Ledger].
func (s SQLite) Describe() string { return "sqlite:" + s.Path }
