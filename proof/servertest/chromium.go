package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// Chromium returns the path of a browser, and its environment variables.
func Chromium(t testing.TB) (path string, env []string) {
	t.Helper()
	folder := binary(t, toolcache.Chromium)
	fonts := filepath.Join(t.TempDir(), "fonts.conf")
	text := fmt.Sprintf("<fontconfig><dir>%s</dir><cachedir>%s</cachedir></fontconfig>\n", filepath.Join(folder, "fonts"), t.TempDir())
	if err := os.WriteFile(fonts, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, "chromium"), []string{"LD_LIBRARY_PATH=" + filepath.Join(folder, "al2023", "lib"), "FONTCONFIG_FILE=" + fonts}
}

// Axe returns a script that checks pages for accessibility.
func Axe(t testing.TB) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(binary(t, toolcache.Axe), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}
