package event_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pawlhq/pawl/event"
)

// The corpus in testdata/fuzz holds one input for each outcome that fuzzing has
// come upon. Prefer a count, as in -fuzztime 200000x: with a duration, Go 1.26
// may fail at the deadline without a finding (https://go.dev/issue/75804).

func FuzzAWS(f *testing.F)         { fuzzDialect(f, event.AWS) }
func FuzzEventBridge(f *testing.F) { fuzzDialect(f, event.EventBridge) }
func FuzzMinIO(f *testing.F)       { fuzzDialect(f, event.MinIO) }
func FuzzVersityGW(f *testing.F)   { fuzzDialect(f, event.VersityGW) }
func FuzzCeph(f *testing.F)        { fuzzDialect(f, event.Ceph) }
func FuzzR2(f *testing.F)          { fuzzDialect(f, event.R2) }
func FuzzGCS(f *testing.F)         { fuzzDialect(f, event.GCS) }
func FuzzAzure(f *testing.F)       { fuzzDialect(f, event.Azure) }

// FuzzDetect checks that detecting a dialect and naming it come to the same.
func FuzzDetect(f *testing.F) {
	addSeeds(f, "*")
	f.Fuzz(func(t *testing.T, payload []byte) {
		batch, ok := fuzzParse(t, payload, event.Detect)
		if !ok {
			return
		}
		named, ok := fuzzParse(t, payload, batch.Dialect)
		if !ok {
			t.Fatalf("detected as %s, but not parsed as it", batch.Dialect)
		}
		if diff := cmp.Diff(batch, named, compareSequencers, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("detected %s differs from the named one:\n%s", batch.Dialect, diff)
		}
	})
}

func fuzzDialect(f *testing.F, d event.Dialect) {
	addSeeds(f, string(d))
	f.Add(writers[d]("a+b%2Bc"))
	f.Fuzz(func(t *testing.T, payload []byte) { fuzzParse(t, payload, d) })
}

// fuzzParse parses the payload and checks what holds for all of them. It
// reports whether the payload was accepted.
func fuzzParse(t *testing.T, payload []byte, d event.Dialect) (event.Batch, bool) {
	before := string(payload)
	b, err := event.Parse(payload, d)
	if string(payload) != before {
		t.Error("the payload was changed")
	}
	if err != nil {
		checkRefusal(t, err)
		if b.Dialect != "" || b.Events != nil || b.Ignored != 0 || b.Test {
			t.Errorf("an error comes with the batch %+v", b)
		}
		return b, false
	}
	if b.Dialect == event.Detect || d != event.Detect && b.Dialect != d {
		t.Errorf("asked for %q, got %q", d, b.Dialect)
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
		t.Error("no sequencer to trust")
	}
	back, err := event.ParseSequencer(e.Sequencer.Raw())
	if err != nil || back.CompareSameKey(e.Sequencer) != 0 {
		t.Errorf("sequencer %s does not come back from %q: %v", e.Sequencer, e.Sequencer.Raw(), err)
	}
}

// addSeeds adds the samples of a dialect, and all payloads of its transcript.
func addSeeds(f *testing.F, dialect string) {
	for _, pattern := range []string{"testdata/samples/" + dialect + "-*.json", "testdata/samples/sns-*.json"} {
		for _, path := range glob(f, pattern) {
			f.Add(readSample(f, filepath.Base(path)))
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
				f.Add([]byte(payload))
			} else if payload, ok := strings.CutPrefix(input, "parse\n"); ok {
				f.Add([]byte(payload))
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
