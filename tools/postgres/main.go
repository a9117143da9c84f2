// Command postgres unpacks the programs of PostgreSQL into a folder, for tests on
// machines that have none installed:
//
//	go run . FOLDER
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	embedded "github.com/fergusstrange/embedded-postgres"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . FOLDER")
		os.Exit(2)
	}
	if err := unpack(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "tools/postgres:", err)
		os.Exit(1)
	}
}

// unpack starts a server once, because the library unpacks the programs only then. The server does
// not start as root, but the programs are unpacked before that.
func unpack(dir string) error {
	scratch, err := os.MkdirTemp("", "pawl-postgres-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	db := embedded.NewDatabase(embedded.DefaultConfig().
		Version(embedded.V18).BinariesPath(dir).Port(54329).Logger(io.Discard).
		CachePath(filepath.Join(scratch, "cache")).RuntimePath(filepath.Join(scratch, "run")))
	started := db.Start()
	if started == nil {
		started = db.Stop()
	}
	if _, err := os.Stat(filepath.Join(dir, "bin", "initdb")); err != nil {
		return fmt.Errorf("no PostgreSQL was unpacked: %w, %w", started, err)
	}
	return nil
}
