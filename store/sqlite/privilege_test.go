package sqlite

import (
	"os"
	"path/filepath"
	"testing"
)

// Root ignores permissions.
func TestOpenWithoutPermission(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pawl.db")
	filled(t, path)
	chmod := func(name string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	withoutPrivilege := func(say, path string) {
		t.Helper()
		restore := dropPrivilege(t)
		defer restore()
		refused(t, path, say)
	}
	chmod(filepath.Dir(dir), 0o755)

	chmod(dir, 0o777)
	chmod(path, 0o444)
	withoutPrivilege("cannot be written", path)
	chmod(path, 0o000)
	withoutPrivilege("cannot be opened", path)

	chmod(path, 0o666)
	chmod(dir, 0o555)
	defer chmod(dir, 0o755)
	withoutPrivilege("cannot be written", path)
	withoutPrivilege("cannot be opened", filepath.Join(dir, "new.db"))
}
