package toolcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// tools/postgres unpacks into a folder of this name.
const postgresVersion = "postgres-18.3.0"

// FindPostgres returns the folder with the programs of an installed PostgreSQL, or else of the one
// that [BuildPostgres] unpacked.
func FindPostgres() (string, error) {
	places, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // on Debian; the pattern is valid
	slices.Sort(places)
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			places = append(places, filepath.Dir(real))
		}
	}
	places = append([]string{filepath.Join(postgresDir(), "bin")}, places...)
	for _, dir := range slices.Backward(places) {
		if hasPostgres(dir) {
			return dir, nil
		}
	}
	return "", errors.New("PostgreSQL is not installed: install it (Debian: apt-get install postgresql), or run `go run ./tools/test -build` in Pawl's repository once")
}

func hasPostgres(dir string) bool {
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return false
		}
	}
	return true
}

// The server runs as another user, who could not access the cache of root.
func postgresDir() string {
	if os.Getuid() == 0 {
		return filepath.Join("/var/tmp", "pawl-"+postgresVersion)
	}
	return filepath.Join(Dir(), postgresVersion)
}

// BuildPostgres downloads PostgreSQL if it is not installed.
func BuildPostgres(ctx context.Context, root string, log io.Writer) error {
	if _, err := FindPostgres(); err == nil {
		return nil
	}
	dir := postgresDir()
	fmt.Fprintf(log, "downloading PostgreSQL once, into %s\n", dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("create a folder for PostgreSQL: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "unpacking-")
	if err != nil {
		return fmt.Errorf("create a folder for PostgreSQL: %w", err)
	}
	defer os.RemoveAll(part)
	if err := os.Chmod(part, 0o755); err != nil {
		return fmt.Errorf("create a folder for PostgreSQL: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "run", ".", part)
	cmd.Dir = filepath.Join(root, "tools", "postgres")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("download PostgreSQL: %w", err)
	}
	if err := os.Rename(part, dir); err != nil && !hasPostgres(filepath.Join(dir, "bin")) {
		return fmt.Errorf("move PostgreSQL to its folder: %w", err)
	}
	return nil
}
