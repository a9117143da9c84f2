package action

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl"
)

func FuzzFacts(f *testing.F) {
	for _, seed := range [][3]string{
		{"in/a b+c.csv", "abc", "v1"}, {"\xff\n=\xfe", "\"<&>\u2028", "null"}, {"PAWL_KEY=x\x00", "\xff", ""}, {"\xed\xa0\x80", "e", "\ufffd"},
	} {
		f.Add(seed[0], seed[1], seed[2], []byte("\n \x1b[31mred\x00\xff\u202e é\n\n  two "))
	}
	f.Fuzz(func(t *testing.T, key, etag, version string, output []byte) {
		task := task()
		task.Object.Key, task.Info.ETag, task.Info.VersionID = key, etag, version
		task.Object.VersionID = ""
		fuzzFacts(t, task)
		fuzzExcerpt(t, output)
	})
}

func fuzzFacts(t *testing.T, task *pawl.Task) {
	key := task.Object.Key
	body, err := FactsOf(task).JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got Facts
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	switch {
	case key == "": // no object has an empty key
	case utf8.ValidString(key) && (got.Key != key || got.KeyBase64 != nil), !utf8.ValidString(key) && (got.Key != "" || string(got.KeyBase64) != key):
		t.Errorf("the key %q was encoded as %q, %q", key, got.Key, got.KeyBase64)
	}
	if utf8.ValidString(task.Info.ETag) && utf8.ValidString(task.Info.VersionID) { // otherwise JSON changes them
		if diff := cmp.Diff(FactsOf(task), got); diff != "" {
			t.Errorf("the decoded facts differ (-want +got):\n%s", diff)
		}
	}
	environ := FactsOf(task).Environ()
	for _, want := range []string{"PAWL_KEY=" + key, "PAWL_ETAG=" + task.Info.ETag, "PAWL_VERSION_ID=" + task.Info.VersionID} {
		if !slices.Contains(environ, want) {
			t.Errorf("%q is not in %q", want, environ)
		}
	}
}

// Excerpt must be idempotent.
func fuzzExcerpt(t *testing.T, output []byte) {
	s := Excerpt(output)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) ||
		strings.TrimSpace(s) != s || strings.Contains(s, "  ") || len(s) > len(output) {
		t.Errorf("the excerpt of %q is %q", output, s)
	}
	if again := Excerpt([]byte(s)); again != s {
		t.Errorf("the excerpt of %q is %q", s, again)
	}
}
