package filescmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/files/server"
)

func TestFileIndex(t *testing.T) {
	for _, test := range []struct{ text, file, want string }{
		{"", "files.db", ""},
		{"index: mine.db", "mine.db", ""},
		{"index: postgres://u:hush@127.0.0.1:1/d", "", "127.0.0.1:1/d schema pawl"},
		{"index: postgresql://u:hush@127.0.0.1:1/d", "", "127.0.0.1:1/d schema pawl"},
		{"index: mysql://u:hush@127.0.0.1:1/d", "", "is not a database URL"},
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
		index, err := openIndex(t.Context(), &app.Runtime{Config: c}, true)
		if err == nil {
			err = index.Close()
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%s: %v: want %q", test.text, err, test.want)
		}
		made, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*.db")) // the pattern is valid
		if test.file != "" && (len(made) != 1 || filepath.Base(made[0]) != test.file) {
			t.Errorf("%s: made %q: want %s", test.text, made, test.file)
		}
	}
}

func TestFileConfiguration(t *testing.T) {
	read := func(text string) (server.Config, error) {
		t.Helper()
		c, err := parts.Table.Parse(filepath.Join(t.TempDir(), "pawl.yaml"), []byte("files: {secret: s, "+text+"}"), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return serverConfig((&app.Runtime{Config: c}))
	}
	for text, want := range map[string]time.Duration{"to: s3://b/p/": 0, "to: s3://b/p/, longest_upload: 3h": 3 * time.Hour} {
		if c, err := read(text); err != nil || c.LongestUpload != want {
			t.Errorf("%s: %v: want %s", text, err, want)
		}
	}
	for _, prefix := range []string{"a%2Fb/", "a?b/", "a#b/"} {
		if _, err := read("to: 's3://b/" + prefix + "'"); !isConfig(err) || !strings.Contains(err.Error(), prefix) {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}

func isConfig(err error) bool {
	_, ok := errors.AsType[*config.Errors](err)
	return ok
}

func TestErrForgeable(t *testing.T) {
	c := &config.Config{}
	if err := explainForgeable(c, s3objects.ErrForgeable); !isConfig(err) || !strings.Contains(err.Error(), "accept_forgeable_uploads: true") {
		t.Error(err)
	}
	if err := explainForgeable(c, nil); err != nil {
		t.Error(err)
	}
}
