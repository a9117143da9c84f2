// Package formattest has stored records of each release, in testdata/RELEASE, and checks that this
// version reads them and writes the same. A release that changes a format adds a folder.
package formattest

import (
	"embed"
	"encoding/json"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/format"
)

//go:embed testdata
var releases embed.FS

var version = regexp.MustCompile(`("v":"1|"format":"[a-z-]+/1)(\.[0-9]+)?"`)

// Check calls rewrite, which decodes a record and encodes it again unchanged, with each record of the given
// names. It also checks that rewrite keeps a member of a higher minor version, and that it returns an
// error for a higher major version.
func Check(t *testing.T, names string, rewrite func(t *testing.T, body string) (string, error)) {
	t.Helper()
	files, err := fs.Glob(releases, "testdata/*/"+names+".json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no record %q: %v", names, err)
	}
	for _, name := range files {
		t.Run(path.Base(path.Dir(name))+"/"+path.Base(name), func(t *testing.T) {
			text, err := releases.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			body := strings.TrimSpace(string(text))
			same(t, rewrite, body, body)
			if !version.MatchString(body) {
				return // the metadata of an object: new members have new names
			}
			const added = `,"in_a_later_version":{"a":[1,null]}}`
			with := strings.TrimSuffix(body, "}") + added
			same(t, rewrite, version.ReplaceAllString(with, `$1.7"`), with)
			next := version.ReplaceAllStringFunc(body, func(v string) string { return strings.Replace(v, "1", "2", 1) })
			if got, err := rewrite(t, next); err == nil {
				t.Errorf("%s: read as %s, want an error", next, got)
			}
		})
	}
}

// CheckMetadata calls rewrite with the metadata of an object that Pawl wrote.
func CheckMetadata(t *testing.T, name string, rewrite func(m map[string]string) map[string]string) {
	t.Helper()
	Check(t, name, func(_ *testing.T, body string) (string, error) {
		var m map[string]string
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			return "", err
		}
		b, err := json.Marshal(rewrite(m))
		return string(b), err
	})
}

// CheckRegister decodes and encodes registers.
func CheckRegister[T any, R interface {
	*T
	format.Record
}](t *testing.T, names string) {
	t.Helper()
	Check(t, names, func(_ *testing.T, body string) (string, error) {
		r := R(new(T))
		if err := format.Decode([]byte(body), r); err != nil {
			return "", err
		}
		b, err := format.Encode(r)
		return string(b), err
	})
}

func same(t *testing.T, rewrite func(*testing.T, string) (string, error), body, want string) {
	t.Helper()
	got, err := rewrite(t, body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var a, b any // without the minor version: some records keep that of the version that wrote them
	if err := json.Unmarshal([]byte(version.ReplaceAllString(got, `$1"`)), &a); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if err := json.Unmarshal([]byte(version.ReplaceAllString(want, `$1"`)), &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("wrote %s\nwant  %s", got, want)
	}
}
