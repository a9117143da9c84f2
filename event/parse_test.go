package event_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/pawlhq/pawl/event"
)

// Each file in testdata/transcripts covers one dialect. -rewrite updates the files; review the diff line by
// line.
//
//	parse [dialect=NAME] [sample=FILE]
//	payload, if no sample is named
//	----
//	result of Parse
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			payload, name := []byte(d.Input), ""
			if d.HasArg("sample") {
				d.ScanArgs(t, "sample", &name)
				payload, name = readSample(t, name), ""
			}
			if d.HasArg("dialect") {
				d.ScanArgs(t, "dialect", &name)
			}
			dialect, err := event.ParseDialect(name)
			if err != nil {
				t.Fatal(err)
			}
			batch, err := event.Parse(payload, dialect)
			return transcript(t, batch, err)
		})
	})
}

func transcript(t *testing.T, b event.Batch, err error) string {
	t.Helper()
	if err != nil {
		checkParseError(t, err)
		return err.Error() + "\n"
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %d events, %d ignored", b.Dialect, len(b.Events), b.Ignored)
	if b.Test {
		s.WriteString(", a test")
	}
	s.WriteByte('\n')
	for _, e := range b.Events {
		fmt.Fprintf(&s, "%s %s\n", e.Kind, e.Object)
		if !e.Sequencer.IsZero() {
			fmt.Fprintf(&s, "  sequencer %s, written %s\n", e.Sequencer, e.Sequencer.Raw())
		}
		if !e.Time.IsZero() {
			fmt.Fprintf(&s, "  at %s\n", e.Time.Format(time.RFC3339Nano))
		}
		if e.ETag != "" {
			fmt.Fprintf(&s, "  etag %s, %d bytes\n", e.ETag, e.Size)
		}
		fmt.Fprintf(&s, "  because of %q\n", e.Name)
	}
	return s.String()
}

func checkParseError(t *testing.T, err error) {
	t.Helper()
	kinds := 0
	for _, kind := range []error{event.ErrMalformed, event.ErrUnknownDialect, event.ErrTooLarge} {
		if errors.Is(err, kind) {
			kinds++
		}
	}
	if kinds != 1 {
		t.Errorf("%v is of %d kinds, want one", err, kinds)
	}
	refused, ok := errors.AsType[*event.ParseError](err)
	if !ok || refused.Err == nil {
		t.Errorf("%v is not a *ParseError with a cause", err)
	}
	if len(err.Error()) > 2500 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
	for _, r := range err.Error() {
		if event.Quote(string(r)) != string(r) && !strings.ContainsRune(` "\`, r) {
			t.Errorf("error %q has an unprintable %q", err, r)
			return
		}
	}
}

func readSample(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
