package replaysource_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/replaysource"
	"github.com/pawlhq/pawl/source/sourcetest"
)

func line(key string) string { return sourcetest.Payload(key) }

func TestForms(t *testing.T) {
	pretty := strings.NewReplacer(`{`, "{\n ", `,`, ",\n ").Replace(line("a"))
	tests := []struct {
		name, input string
		want        []string
	}{
		{"lines", line("a") + "\n" + line("b") + "\n", []string{"a", "b"}},
		{"no last newline", line("a") + "\n" + line("b"), []string{"a", "b"}},
		{"Windows", line("a") + "\r\n\r\n" + line("b") + "\r\n", []string{"a", "b"}},
		{"nothing between", line("a") + line("b"), []string{"a", "b"}},
		{"pretty printed", pretty + "\n" + pretty, []string{"a", "a"}},
		{"nothing", "", []string{}},
		{"blank", " \n\n", []string{}},
		{"nothing to do", `{"Event":"s3:TestEvent","Bucket":"b","Service":"S3"}`, []string{}},
		{"space for two buffers", line("a") + strings.Repeat(" \n", 100<<10) + line("b"), []string{"a", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sink, p, err := replay(t, replaysource.Config{}, tt.input)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, sink.keys()); diff != "" {
				t.Error(diff)
			}
			if n := len(tt.want); !p.Complete || p.Events != int64(n) || p.Verdicts.Raised != n || p.Bytes != int64(len(tt.input)) {
				t.Errorf("progress %+v", p)
			}
		})
	}
}

// Each file is one payload, even an array.
func TestCaptures(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) != 6 {
		t.Fatal(paths, err)
	}
	s, sink := newSource(t, replaysource.Config{Paths: paths}), &recordingSink{}
	if err := s.Run(t.Context(), sink); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range sink.events {
		got = append(got, fmt.Sprintf("%s %s %s", e.Dialect, e.Kind, e.Object))
	}
	want := []string{
		`minio created "s3://photos/a b+c/é.txt"`,
		`minio removed "s3://photos/a b+c/é.txt"`,
		`versitygw created "s3://photos/a b+c/é.txt"`,
		`versitygw removed "s3://photos/a b+c/é.txt"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var size int64
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	wantProgress := replaysource.Progress{
		Bytes: size, Total: size, Payloads: 6, Events: 4, Ignored: 1, Acknowledged: 6,
		Verdicts: source.Verdicts{Raised: 4}, Complete: true,
	}
	if diff := cmp.Diff(wantProgress, s.Progress()); diff != "" {
		t.Error(diff)
	}
}

func TestBadInput(t *testing.T) {
	good := line("a") + "\n"
	offset := int64(len(good))
	large := `{"x":"` + strings.Repeat("x", event.MaxPayload-7) + `"}` // one byte more than allowed
	tests := []struct {
		name, rest   string
		line, offset int64
		skippable    bool
		is           error
		says         string
	}{
		{"truncated", line("b")[:100], 2, offset, true, io.ErrUnexpectedEOF, "ends within the payload"},
		{"truncated in a literal", "tru", 2, offset, true, io.ErrUnexpectedEOF, "ends within the payload"},
		{"not JSON", "\nin/a.jpg was written\n", 3, offset + 1, true, nil, "not JSON"},
		{"not JSON further down", "{\n\"a\": 1,\nb}\n", 4, offset + 10, true, nil, "not JSON"},
		{"truncated in mid-file", line("b")[:100] + "\n" + line("c"), 2, offset + 100, true, nil, "not JSON"},
		{"stray bracket", "]\n", 2, offset, true, nil, "not JSON"},
		{"not JSON behind a space", " ]\n", 2, offset + 1, false, nil, "does not start on a new line, so it cannot be skipped"},
		{"unknown dialect", "\n\n" + `{"hello":"world"}`, 4, offset + 2, true, event.ErrUnknownDialect, "unknown notification dialect"},
		{"not a notification", "17\n", 2, offset, true, event.ErrUnknownDialect, "unknown notification dialect"},
		{"a name twice", `{"Records":[],"Records":[]}`, 2, offset, true, event.ErrMalformed, "occurs twice"},
		{"sequencer", strings.Replace(line("b"), "0055", "00zz", 1), 2, offset, true, event.ErrMalformed, "not hexadecimal"},
		{"too large", large, 2, offset, true, event.ErrTooLarge, "at most 1048576"},
		{"much too large", strings.Repeat(large[:len(large)-2], 3), 2, offset, true, event.ErrTooLarge, "more than 1048576 bytes"},
		{"nothing for too long", strings.Repeat(" ", event.MaxPayload+1) + "{}", 2, offset - 1 + event.MaxPayload, false, event.ErrTooLarge, "more than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sink, p, err := replay(t, replaysource.Config{}, good+tt.rest)
			var bad *replaysource.InputError
			if !errors.As(err, &bad) {
				t.Fatalf("error %v is no InputError", err)
			}
			if bad.Line != tt.line || bad.Offset != tt.offset || bad.Number != 2 || bad.Skippable != tt.skippable {
				t.Errorf("line %d, offset %d, payload %d, skippable %t, want %d, %d, 2, %t",
					bad.Line, bad.Offset, bad.Number, bad.Skippable, tt.line, tt.offset, tt.skippable)
			}
			if tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 600 {
				t.Errorf("error is %q", err)
			}
			if diff := cmp.Diff([]string{"a"}, sink.keys()); diff != "" || p.Acknowledged != 1 || p.Complete {
				t.Errorf("the earlier payloads were not delivered: %s, %+v", diff, p)
			}
		})
	}
}

func TestLargestPayload(t *testing.T) {
	a := line("a")
	largest := a[:len(a)-1] + `,"x":"` + strings.Repeat("x", event.MaxPayload-len(a)-len(`,"x":""`)) + `"}`
	if len(largest) != event.MaxPayload {
		t.Fatal(len(largest))
	}
	sink, _, err := replay(t, replaysource.Config{}, largest+largest+line("b"))
	if diff := cmp.Diff([]string{"a", "a", "b"}, sink.keys()); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestSkipBad(t *testing.T) {
	input := line("a") + "\n{\"hello\":\n\"world\"}\n17 " + line("b") + "\n" + `{"Records":[],"Records":[]}` + line("c")
	sink, p, err := replay(t, replaysource.Config{SkipBad: true}, input)
	if diff := cmp.Diff([]string{"a", "b", "c"}, sink.keys()); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if p.Skipped != 3 || p.Payloads != 3 || !p.Complete {
		t.Errorf("progress %+v", p)
	}
	if _, _, err := replay(t, replaysource.Config{SkipBad: true}, input+"{"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a truncated input ended in %v", err)
	}
}

func TestSkipBadLine(t *testing.T) {
	a, b := line("a")+"\n", line("b")
	huge := strings.Repeat("x", 3*event.MaxPayload) + "\n"
	tests := []struct {
		name, input string
		want        []string
		at          []string // line and byte of each skipped payload
	}{
		{"text", a + "in/c.jpg was written\n" + b, []string{"a", "b"}, []string{":2: payload 2 (byte 346)"}},
		{"first line", "# a log\n" + a, []string{"a"}, []string{":1: payload 1 (byte 0)"}},
		{"last line, cut off", a + b[:100], []string{"a"}, []string{":2: payload 2 (byte 346)"}},
		{"cut off in a text", a + b[:100] + "\n" + b, []string{"a", "b"}, []string{":2: payload 2 (byte 346)"}},
		{"cut off where a value may follow", a + "{\"x\":\n" + b + "\n" + b, []string{"a", "b", "b"}, []string{":2: payload 2 (byte 346)"}},
		{"brackets", a + "[\n[\n" + b, []string{"a", "b"}, []string{"payload 2", ":3: payload 3"}},
		{"much too large", a + `{"x":"` + huge + b, []string{"a", "b"}, []string{":2: payload 2 (byte 346)"}},
		{"much too large at the end", a + `{"x":"` + huge, []string{"a"}, []string{":2: payload 2 (byte 346)"}},
		{"one byte too large", a + `"` + huge[:event.MaxPayload-1] + "\"\n" + b, []string{"a", "b"}, []string{":2: payload 2 (byte 346)"}},
		{"bad and far from the next", a + "]" + strings.Repeat("\n", 100<<10) + b, []string{"a", "b"}, []string{":2: payload 2 (byte 346)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			cfg := replaysource.Config{SkipBad: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			sink, p, err := replay(t, cfg, tt.input)
			if diff := cmp.Diff(tt.want, sink.keys()); err != nil || diff != "" {
				t.Error(err, diff)
			}
			if p.Skipped != int64(len(tt.at)) || p.Payloads != int64(len(tt.want)) || p.Bytes != int64(len(tt.input)) || !p.Complete {
				t.Errorf("progress %+v", p)
			}
			for _, at := range tt.at {
				if !strings.Contains(log.String(), at) {
					t.Errorf("the log does not name %q: %s", at, &log)
				}
			}
		})
	}
}

// A later brace may belong to the invalid payload.
func TestSkipBadEndsWithinLine(t *testing.T) {
	for _, input := range []string{line("a") + "} " + line("b"), line("a") + "\n  nonsense\n" + line("b")} {
		sink, p, err := replay(t, replaysource.Config{SkipBad: true}, input)
		if diff := cmp.Diff([]string{"a"}, sink.keys()); err == nil || diff != "" || p.Complete {
			t.Error(err, diff)
		} else if !strings.Contains(err.Error(), "does not start on a new line") || strings.Contains(err.Error(), "or skip it") {
			t.Errorf("error is %q", err)
		}
	}
}

func TestCompressedInput(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, line("a")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, p, err := replay(t, replaysource.Config{SkipBad: true}, b.String())
	if err == nil || !strings.Contains(err.Error(), "decompress it with zcat") || p.Skipped != 0 {
		t.Errorf("error %v, progress %+v", err, p)
	}
}

func TestNew(t *testing.T) {
	folder := t.TempDir()
	tests := []struct {
		name string
		cfg  replaysource.Config
		want string
	}{
		{"nothing", replaysource.Config{}, "nothing to read"},
		{"missing", replaysource.Config{Paths: []string{folder + "/a\nb"}}, `a\nb": no such file`},
		{"folder", replaysource.Config{Paths: []string{folder}}, "is a folder: name the files in it"},
		{"standard input twice", replaysource.Config{Paths: []string{"-", "-"}, Stdin: strings.NewReader("")}, "only once"},
		{"dialect", replaysource.Config{Paths: []string{"-"}, Dialect: "s4"}, `unknown dialect "s4"`},
		{"grace", replaysource.Config{Paths: []string{"-"}, ShutdownTimeout: -1}, "ShutdownTimeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := replaysource.New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestFileGone(t *testing.T) {
	first, second := file(t, line("a")), file(t, line("b"))
	s, sink := newSource(t, replaysource.Config{Paths: []string{first, second}}), &recordingSink{}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	err := s.Run(t.Context(), sink)
	if err == nil || !errors.Is(err, os.ErrNotExist) || len(sink.events) != 1 || s.Progress().Complete {
		t.Errorf("error %v after %d events", err, len(sink.events))
	}
}
