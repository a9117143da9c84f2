package app

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/event"
)

func TestObjectCandidates(t *testing.T) {
	one := func(key, version string) []event.Object {
		return []event.Object{{Bucket: "b", Key: key, VersionID: version}}
	}
	for arg, want := range map[string][]event.Object{
		`s3://b/k`:                  one("k", ""),
		`s3://b//k`:                 one("/k", ""),
		`s3://b/a b+c/..`:           one("a b+c/..", ""),
		`"s3://b/a\nb"`:             one("a\nb", ""),
		`"s3://b/a\x3fversionId=1"`: one("a?versionId=1", ""),
		`"s3://b/a b?versionId=1"`:  one("a b", "1"),
		`s3://b/a\nb`:               append(one(`a\nb`, ""), one("a\nb", "")...),
		`s3://b/a\qb`:               one(`a\qb`, ""),
		`s3://b/a?versionId=1`:      append(one("a", "1"), one("a?versionId=1", "")...),
	} {
		got, err := ObjectCandidates(arg)
		if err != nil {
			t.Errorf("%s: %v", arg, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", arg, diff)
		}
	}
	for _, arg := range []string{"", "b/k", "s3://", "s3://b", "s3://b/", "s3:///k", `"`, `""`, `"s3://b/\q"`, "http://b/k"} {
		if got, err := ObjectCandidates(arg); err == nil {
			t.Errorf("%s: got %v", arg, got)
		}
	}
}

// Printed objects can be pasted with and without quotes, and plain keys can be typed.
func TestObjectCandidatesRoundTrip(t *testing.T) {
	key := rapid.OneOf(
		rapid.StringMatching(`[a-z?=\\"'\x00-\x20é]{1,8}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 6), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.StringMatching(`[a"\\?]{0,3}`), func(s string) string { return s + versionQuery + s }),
	)
	rapid.Check(t, func(t *rapid.T) {
		o := event.Object{Bucket: "b", Key: key.Draw(t, "key"), VersionID: rapid.SampledFrom([]string{"", "v1", "a b"}).Draw(t, "version")}
		printed := o.String()
		args := []string{printed, strings.Trim(printed, `"`)}
		if strings.HasPrefix(printed, `"`) {
			args[1] = printed[1 : len(printed)-1]
		}
		if o.VersionID == "" {
			args = append(args, "s3://b/"+o.Key)
		}
		for _, arg := range args {
			got, err := ObjectCandidates(arg)
			if err != nil {
				t.Fatalf("%q: %v", arg, err)
			}
			found := false
			for _, g := range got {
				found = found || g == o
			}
			if !found {
				t.Fatalf("%q: got %q, want %q", arg, got, o)
			}
		}
	})
}

func TestShellQuote(t *testing.T) {
	for key, want := range map[string]string{
		"k":             "s3://b/k",
		"a b":           "'s3://b/a b'",
		"it's":          `'s3://b/it'\''s'`,
		"a\nb":          `'"s3://b/a\nb"'`,
		"$x`y`":         "'s3://b/$x`y`'",
		"a?versionId=1": `'"s3://b/a\x3fversionId=1"'`,
	} {
		if got := ShellQuote(event.Object{Bucket: "b", Key: key}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
