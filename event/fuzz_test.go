package event_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pawlhq/pawl/event"
)

// Run with a count such as -fuzztime 200000x. With a duration, Go 1.26 may fail at the deadline without a
// finding (https://go.dev/issue/75804); tools/test handles that.

// The corpus contains indices of dialects: append only.
var dialects = []event.Dialect{event.AWS, event.EventBridge, event.MinIO, event.VersityGW, event.Ceph, event.R2, event.GCS, event.Azure}

func FuzzDialect(f *testing.F) {
	for i, d := range dialects {
		add := func(payload []byte) { f.Add(byte(i), payload) }
		eachSeed(f, string(d), add)
		add(notifications[d]("a+b%2Bc"))
	}
	f.Fuzz(func(t *testing.T, dialect byte, payload []byte) {
		fuzzParse(t, payload, dialects[int(dialect)%len(dialects)])
	})
}

func TestDialectsAreFuzzed(t *testing.T) {
	for _, d := range event.Dialects {
		if !slices.Contains(dialects, d) {
			t.Errorf("FuzzDialect does not cover %s", d)
		}
	}
}

func FuzzDetect(f *testing.F) {
	eachSeed(f, "*", func(payload []byte) { f.Add(payload) })
	f.Fuzz(func(t *testing.T, payload []byte) {
		batch, ok := fuzzParse(t, payload, event.Detect)
		checkWrapped(t, payload, batch, ok)
		if !ok {
			return
		}
		named, ok := fuzzParse(t, payload, batch.Dialect)
		if !ok {
			t.Fatalf("detected as %s, but that dialect rejects it", batch.Dialect)
		}
		if diff := cmp.Diff(batch, named, compareSequencers, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("detected %s differs from the requested dialect:\n%s", batch.Dialect, diff)
		}
	})
}

func checkWrapped(t *testing.T, payload []byte, bare event.Batch, ok bool) {
	if !utf8.Valid(payload) || len(payload) > event.MaxPayload/2 {
		return
	}
	batch, err := event.Parse([]byte(`{"Type":"Notification","Message":`+quoteJSON(string(payload))+`}`), event.Detect)
	switch {
	case err != nil:
		checkParseError(t, err)
		if !strings.Contains(err.Error(), "in the SNS message") {
			t.Errorf("the error does not mention the envelope: %v", err)
		}
		if ok && !strings.Contains(err.Error(), "an SNS message inside an SNS message") {
			t.Errorf("accepted, but not in an envelope: %v", err)
		}
	case !ok:
		t.Error("rejected, but accepted in an envelope")
	default:
		if diff := cmp.Diff(bare, batch, compareSequencers, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the envelope changes the result:\n%s", diff)
		}
	}
}

func fuzzParse(t *testing.T, payload []byte, d event.Dialect) (event.Batch, bool) {
	before := string(payload)
	b, err := event.Parse(payload, d)
	if string(payload) != before {
		t.Error("the payload was changed")
	}
	if err != nil {
		checkParseError(t, err)
		if b.Dialect != "" || b.Events != nil || b.Ignored != 0 || b.Test {
			t.Errorf("an error and the batch %+v", b)
		}
		return b, false
	}
	if b.Dialect == event.Detect || d != event.Detect && b.Dialect != d {
		t.Errorf("requested %q, got %q", d, b.Dialect)
	}
	if b.Test && len(b.Events)+b.Ignored > 0 || len(b.Events)+b.Ignored > event.MaxRecords {
		t.Errorf("%d events, %d ignored, test %t", len(b.Events), b.Ignored, b.Test)
	}
	for _, e := range b.Events {
		checkEvent(t, b.Dialect, e)
	}
	return b, true
}

func checkEvent(t *testing.T, d event.Dialect, e event.Event) {
	o := e.Object
	switch {
	case o.Bucket == "" || strings.Contains(o.Bucket, "/"):
		t.Errorf("bucket %q", o.Bucket)
	case o.Key == "" || len(o.Key) > event.MaxKey:
		t.Errorf("key %q", o.Key)
	case o.VersionID == "null":
		t.Error("version null")
	case e.Kind != event.Created && e.Kind != event.Removed, e.Name == "":
		t.Errorf("%s %q", e.Kind, e.Name)
	case e.Kind == event.Removed && (e.ETag != "" || e.Size != 0):
		t.Errorf("a removal of %d bytes, etag %q", e.Size, e.ETag)
	case e.Size < 0:
		t.Errorf("size %d", e.Size)
	case e.Dialect != d:
		t.Errorf("an event of %q in a batch of %q", e.Dialect, d)
	case d.TrustsSequencer() && e.Sequencer.IsZero():
		t.Error("no sequencer in a dialect with trusted sequencers")
	}
	back, err := event.ParseSequencer(e.Sequencer.Raw())
	if err != nil || back.CompareSameKey(e.Sequencer) != 0 {
		t.Errorf("sequencer %s is not restored from %q: %v", e.Sequencer, e.Sequencer.Raw(), err)
	}
}

func FuzzSequencer(f *testing.F) {
	for _, seed := range [][2]string{
		{"0055AED6DCD90281E5", "0055AED6DCD90281E50"}, {"0", "00"}, {"", "0"}, {"a", "A"}, {"1", "10000000000000000000000000000000000000001"},
		{"00000000000004420000000000028963", "0000000000000442000000000002896"}, {"0x1", "١"}, {strings.Repeat("F", event.MaxSequencer), "F0"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := fuzzSequencer(t, a)
		y, okY := fuzzSequencer(t, b)
		if !okX || !okY {
			return
		}
		want := strings.Compare(padded(a), padded(b))
		if a == "" || b == "" {
			want = len(a) - len(b) // no sequencer is before all others
		}
		got := x.CompareSameKey(y)
		if got != sign(want) || got != -y.CompareSameKey(x) || got != strings.Compare(x.String(), y.String()) {
			t.Errorf("%q and %q compare as %d and %d, their text as %d, want %d", a, b, got, y.CompareSameKey(x),
				strings.Compare(x.String(), y.String()), want)
		}
		if x.SameShape(y) != y.SameShape(x) || !x.SameShape(x) {
			t.Errorf("SameShape of %q and %q is not symmetric", a, b)
		}
	})
}

func sign(n int) int { return max(-1, min(n, 1)) }

func padded(s string) string {
	return strings.ToUpper(s) + strings.Repeat("0", event.MaxSequencer-len(s))
}

func fuzzSequencer(t *testing.T, raw string) (event.Sequencer, bool) {
	s, err := event.ParseSequencer(raw)
	hexadecimal := strings.Trim(raw, "0123456789abcdefABCDEF") == ""
	if ok := hexadecimal && len(raw) <= event.MaxSequencer; ok != (err == nil) {
		t.Errorf("%q: %v", raw, err)
	}
	if err != nil {
		return s, false
	}
	text, err := s.MarshalText()
	var back event.Sequencer
	if err := errors.Join(err, back.UnmarshalText(text)); err != nil || back.Raw() != raw || back.String() != s.String() {
		t.Errorf("%q is restored as %q: %v", raw, back.Raw(), err)
	}
	canon, err := event.ParseSequencer(s.String())
	if err != nil || canon.String() != s.String() || canon.CompareSameKey(s) != 0 || s.IsZero() != (raw == "") {
		t.Errorf("%q has the canonical form %q, whose canonical form is %q: %v", raw, s, canon, err)
	}
	return s, true
}

func FuzzObject(f *testing.F) {
	for _, seed := range [][3]string{
		{"photos", "in/a b+c/é.txt", "v1"}, {"b", "\x1b[31mred\nlevel=ERROR", ""}, {"b", "a?versionId=1", ""}, {"b", `"k"`, "?versionId=2"},
		{"b", "\xff\u202e\uFFFD", "\x00"}, {"b", `a\x3fversionId=`, `"`}, {"b?versionId=x", "k", "v"}, {"b", "a\u202eb", "\x7f"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, bucket, key, version string) {
		if got, ok := unquoted(event.Quote(key)); !ok || got != key {
			t.Errorf("%q is quoted as %s, which unquotes to %q", key, event.Quote(key), got)
		}
		checkPrintable(t, event.Quote(key))
		if bucket == "" || strings.Contains(bucket, "/") || key == "" {
			return
		}
		o := event.Object{Bucket: bucket, Key: key, VersionID: version}
		checkPrintable(t, o.String())
		if got, ok := readObject(o.String()); !ok || got != o {
			t.Errorf("%#v is printed as %s, which parses to %#v", o, o, got)
		}
	})
}

func checkPrintable(t *testing.T, s string) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		t.Errorf("%q is not printable", s)
	}
}

func unquoted(printed string) (string, bool) {
	if !strings.HasPrefix(printed, `"`) {
		return printed, true
	}
	s, err := strconv.Unquote(printed)
	return s, err == nil
}

func readObject(printed string) (o event.Object, ok bool) {
	address, version, versioned := strings.Cut(printed, "?versionId=")
	if versioned && strings.HasPrefix(printed, `"`) {
		address, version = address+`"`, `"`+version
	}
	address, okAddress := unquoted(address)
	if o.VersionID, ok = unquoted(version); !ok || !okAddress {
		return o, false
	}
	o.Bucket, o.Key, ok = strings.Cut(strings.TrimPrefix(address, "s3://"), "/")
	return o, ok
}

func eachSeed(f *testing.F, dialect string, add func(payload []byte)) {
	for _, pattern := range []string{"testdata/samples/" + dialect + "-*.json", "testdata/samples/sns-*.json"} {
		for _, path := range glob(f, pattern) {
			add(readSample(f, filepath.Base(path)))
		}
	}
	for _, path := range glob(f, "testdata/transcripts/"+dialect+".txt") {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n\n") {
			input, _, _ := strings.Cut(block, "\n----")
			if _, payload, ok := strings.Cut(input, "\nparse\n"); ok {
				add([]byte(payload))
			} else if payload, ok := strings.CutPrefix(input, "parse\n"); ok {
				add([]byte(payload))
			}
		}
	}
}

func glob(f *testing.F, pattern string) []string {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		f.Fatalf("no %s: %v", pattern, err)
	}
	return paths
}
