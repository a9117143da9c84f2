package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/parts"
)

// TestFileIndex: the index is where the configuration says, or in the database of
// the ledger, or in a file beside the configuration.
func TestFileIndex(t *testing.T) {
	for _, test := range []struct{ text, file, want string }{
		{"", "files.db", ""},
		{"index: mine.db", "mine.db", ""},
		{"index: postgres://u:hush@127.0.0.1:1/d", "", "127.0.0.1:1/d schema pawl"},
		{"index: postgresql://u:hush@127.0.0.1:1/d", "", "127.0.0.1:1/d schema pawl"},
		{"index: mysql://u:hush@127.0.0.1:1/d", "", "is no URL of a database of PostgreSQL"},
		{"}\nledger: postgres://u:hush@127.0.0.1:1/l?schema=s", "", "127.0.0.1:1/l schema s"},
		{"index: mine.db}\nledger: postgres://u:hush@127.0.0.1:1/l", "mine.db", ""},
	} {
		name := filepath.Join(t.TempDir(), "pawl.yaml")
		text := "files: {to: s3://b/p/, secret: s, " + test.text
		if !strings.Contains(text, "}") {
			text += "}"
		}
		c, err := parts.Table.Parse(name, []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		index, err := (&machine{config: c}).fileIndex(t.Context(), c.Files, true)
		if err == nil {
			err = index.Close()
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%s: %v: want %q", test.text, err, test.want)
		}
		made, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*.db")) // the pattern is right
		if test.file != "" && (len(made) != 1 || filepath.Base(made[0]) != test.file) {
			t.Errorf("%s: made %q: want %s", test.text, made, test.file)
		}
	}
}
