package demo

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCommandName(t *testing.T) {
	dir := t.TempDir()
	program := func(folder string) string {
		path := filepath.Join(dir, folder, "pawl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	installed, built, run, odd := program("bin"), program("out"), program("go-build12/b001/exe"), program("my bin")
	t.Setenv("PATH", filepath.Dir(installed))
	t.Chdir("../../..")
	for binary, want := range map[string]string{
		installed: "pawl", built: built, run: "go run ./cmd/pawl", odd: "'" + odd + "'",
	} {
		if got := commandName(binary); got != want {
			t.Errorf("%s: got %s, want %s", binary, got, want)
		}
	}
	t.Chdir(dir) // a folder without the source
	if got := commandName(run); got != run {
		t.Errorf("elsewhere: got %s, want %s", got, run)
	}
}

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{"/tmp/a.yaml": "/tmp/a.yaml", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$HOME": "'$HOME'"} {
		if got := shellWord(s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}
