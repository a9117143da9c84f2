package event_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/pawlhq/pawl/event"
	"pgregory.net/rapid"
)

func TestQuote(t *testing.T) {
	tests := []struct{ in, want string }{
		{"in/photo-1.jpg", "in/photo-1.jpg"},
		{"é/日本.txt", "é/日本.txt"},
		{"%2B+", "%2B+"},
		{"", `""`},
		{"a b", `"a b"`},
		{`a"b`, `"a\"b"`},
		{`a\b`, `"a\\b"`},
		{"ok\nlevel=ERROR msg=forged", `"ok\nlevel=ERROR msg=forged"`},
		{"\x1b[2J", `"\x1b[2J"`},
		{"photo\u202egpj.exe", `"photo\u202egpj.exe"`},
		{"non\u00a0breaking", `"non\u00a0breaking"`},
		{"zero\u200bwidth", `"zero\u200bwidth"`},
		{"\xff", `"\xff"`},
		{"\ufffd", `"�"`},
		{"\x00", `"\x00"`},
		{"\u0085", `"\u0085"`},
	}
	for _, test := range tests {
		if got := event.Quote(test.in); got != test.want {
			t.Errorf("Quote(%q) = %s, want %s", test.in, got, test.want)
		}
	}
}

func similarStrings() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{
		"a", "/", " ", "+", "%2B", `"`, `\`, `\n`, "\n", `\xff`, "\xff", "\ufffd", `\x3f`, "?",
		"?versionId=", "\u202e", "\x1b[0m", "é", "e\u0301",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "parts"), "")
	})
}

func TestPrintedNamesAreHarmlessAndDistinct(t *testing.T) {
	object := rapid.Custom(func(t *rapid.T) event.Object {
		return event.Object{Bucket: "b", Key: similarStrings().Draw(t, "key"), VersionID: similarStrings().Draw(t, "version")}
	})
	rapid.Check(t, func(t *rapid.T) {
		o, other := object.Draw(t, "one"), object.Draw(t, "other")
		if o != other && o.String() == other.String() {
			t.Fatalf("%#v and %#v both print %s", o, other, o)
		}
		if !utf8.ValidString(o.String()) {
			t.Fatalf("%#v prints invalid UTF-8: %q", o, o.String())
		}
		for _, r := range o.String() {
			if !unicode.IsPrint(r) {
				t.Fatalf("%#v prints %q", o, r)
			}
		}
		if q := event.Quote(o.Key); q != o.Key {
			if back, err := strconv.Unquote(q); err != nil || back != o.Key {
				t.Fatalf("Quote(%q) reads back as %q, %v", o.Key, back, err)
			}
		}
	})
}

func TestObjectString(t *testing.T) {
	tests := []struct {
		o    event.Object
		want string
	}{
		{event.Object{Bucket: "b", Key: "k"}, "s3://b/k"},
		{event.Object{Bucket: "b", Key: "k", VersionID: "v"}, "s3://b/k?versionId=v"},
		{event.Object{Bucket: "b", Key: "/k"}, "s3://b//k"},
		{event.Object{Bucket: "b", Key: "a b", VersionID: "v"}, `"s3://b/a b?versionId=v"`},
		{event.Object{Bucket: "b", Key: "k?versionId=v"}, `"s3://b/k\x3fversionId=v"`},
		{event.Object{Bucket: "b", Key: "k?versionId=v", VersionID: "w"}, `"s3://b/k\x3fversionId=v?versionId=w"`},
	}
	for _, test := range tests {
		if got := test.o.String(); got != test.want {
			t.Errorf("%#v prints %s, want %s", test.o, got, test.want)
		}
	}
}

func TestKindText(t *testing.T) {
	for _, kind := range []event.Kind{0, event.Created, event.Removed} {
		text, err := kind.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back event.Kind
		if err := back.UnmarshalText(text); err != nil || back != kind {
			t.Errorf("%v was restored from %q as %v, %v", kind, text, back, err)
		}
	}
	var kind event.Kind
	if err := kind.UnmarshalText([]byte("Created")); err == nil {
		t.Error("Created was accepted, but kinds are case-sensitive")
	}
}

func TestParseDialect(t *testing.T) {
	for _, d := range event.Dialects {
		if got, err := event.ParseDialect(string(d)); err != nil || got != d {
			t.Errorf("ParseDialect(%q) = %q, %v", d, got, err)
		}
		if notifications[d] == nil {
			t.Errorf("notifications lacks %s", d)
		}
	}
	for _, name := range []string{"", "auto"} {
		if got, err := event.ParseDialect(name); err != nil || got != event.Detect {
			t.Errorf("ParseDialect(%q) = %q, %v", name, got, err)
		}
	}
	if _, err := event.ParseDialect("s3"); err == nil || !strings.Contains(err.Error(), "minio") {
		t.Errorf("error %v does not list the dialects", err)
	}
}
