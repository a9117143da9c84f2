package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// commandName returns the program's name if the shell finds it, `go run` if that started it, or
// else its path.
func commandName(binary string) string {
	name := filepath.Base(binary)
	if found, err := exec.LookPath(name); err == nil && sameFile(found, binary) {
		return shellWord(name)
	}
	const source = "./cmd/pawl"
	if _, err := os.Stat(source); err == nil && strings.Contains(filepath.ToSlash(binary), "/go-build") {
		return "go run " + source
	}
	return shellWord(binary)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func shellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._-+=@%,"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
