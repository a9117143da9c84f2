package replaysource_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source/replaysource"
)

type chunked struct {
	left  []byte
	piece int
	taken atomic.Int64 // standard input may be read after the run has ended
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[:min(c.piece, len(c.left))])
	c.left = c.left[n:]
	c.taken.Add(int64(n))
	return n, nil
}

// FuzzReplay compares a replay with a decoder that keeps the whole input in memory. The bytes 0xF8 and
// 0xF9, which text cannot contain, become half of event.MaxPayload: a fuzzer would not produce such a long
// input.
func FuzzReplay(f *testing.F) {
	captures, err := filepath.Glob("testdata/*.json")
	if err != nil || len(captures) == 0 {
		f.Fatal("no captures: ", err)
	}
	a, b := line("a"), line("b")
	inputs := []string{
		a + "\n" + b + "\n", a + b, a + "\r\n\r\n" + b, "", " \n", "\xef\xbb\xbf" + a, a + "\n# a log\n" + b, a + "{\"x\":\n" + b + "\n" + b,
		a + "\n{\"x\":\"\xf8\xf8\xf8\"}\n" + b, "\xf9\xf9\xf9" + a, "\xf9\xf9", "\xf9\xf9" + a, "\xf9 " + a + "\xf9 ", "[[[\"\xf8", a + "\n" + a[:len(a)-1] + ",\"x\":\"\xf8\"}" + b, "\x1f\x8b\x08",
		"17 null \"\\ud800\" -0 1e999\n" + a, strings.Repeat("[", 10_001) + "\n" + a, `{"Records":[],"Records":[]}` + a, a[:100], strings.ReplaceAll(a, "{", "{\n") + "17",
		a[:len(a)-1] + `,"received_at":1e9}` + "\n" + b[:len(b)-1] + `,"received_at":"1e9"}`, `{"received_at":1,"received_at":2}`,
	}
	for _, name := range captures {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		inputs = append(inputs, string(b))
	}
	for i, input := range inputs {
		f.Add([]byte(input), uint16(1+i*4111), true)
		f.Add([]byte(input), uint16(1+i*4111), false)
	}
	f.Fuzz(func(t *testing.T, input []byte, piece uint16, skip bool) {
		if bytes.Count(input, []byte{0xf8})+bytes.Count(input, []byte{0xf9}) > 6 {
			return // as large as allowed
		}
		half := event.MaxPayload / 2
		input = bytes.ReplaceAll(input, []byte{0xf8}, bytes.Repeat([]byte("x"), half))
		input = bytes.ReplaceAll(input, []byte{0xf9}, bytes.Repeat([]byte(" "), half))
		fuzzReplay(t, input, max(int(piece), len(input)/1000, 1), skip)
	})
}

func fuzzReplay(t *testing.T, input []byte, piece int, skip bool) {
	in := &chunked{left: input, piece: piece}
	s, sink := newSource(t, replaysource.Config{Stdin: in, SkipBad: skip}), &recordingSink{}
	err := s.Run(t.Context(), sink)
	p := s.Progress()
	if p.Complete != (err == nil) || p.Bytes > int64(len(input)) || p.Complete && p.Bytes != int64(len(input)) ||
		p.Events != int64(len(sink.events)) || p.Acknowledged != p.Payloads || p.Skipped > 0 && !skip {
		t.Errorf("%+v after %v of %d bytes, with %d events", p, err, len(input), len(sink.events))
	}
	var bad *replaysource.InputError
	if err != nil && !errors.As(err, &bad) {
		t.Fatalf("error %v is no InputError", err)
	}
	if bad != nil {
		checkPlace(t, bad, input)
		// The source may buffer one payload, two buffers, and the read-ahead of a pipe.
		if ahead := in.taken.Load() - bad.Offset; ahead > event.MaxPayload+4*64<<10 {
			t.Errorf("%d bytes were read beyond the fault at %d", ahead, bad.Offset)
		}
	}
	want, all := model(input)
	switch got := sink.keys(); {
	case !skip && (!slices.Equal(got, want) || all != (err == nil)):
		t.Errorf("delivered %q, %v, want %q and no error: %v", got, err, want, all)
	case skip && len(got) < len(want) || skip && !slices.Equal(got[:len(want)], want):
		t.Errorf("delivered %q, %v, want at least %q", got, err, want)
	}
	checkScan(t, input, skip, len(sink.events))
}

// checkScan compares Scan with Run. Only an invalid arrival time makes a difference.
func checkScan(t *testing.T, input []byte, skip bool, events int) {
	timed := bytes.Contains(input, []byte("received_at"))
	scanned := 0
	err := newSource(t, replaysource.Config{Stdin: bytes.NewReader(input), SkipBad: skip}).Scan(t.Context(), func(p replaysource.Payload) error {
		scanned += len(p.Events)
		if !timed && !p.Received.IsZero() {
			t.Errorf("arrival %s without a member", p.Received)
		}
		return nil
	})
	if scanned > events || scanned < events && !timed {
		t.Errorf("scanned %d events, %v, and delivered %d", scanned, err, events)
	}
}

func checkPlace(t *testing.T, e *replaysource.InputError, input []byte) {
	if e.Offset < 0 || e.Offset > int64(len(input)) || e.Number < 1 {
		t.Fatalf("a fault at byte %d of %d, in payload %d", e.Offset, len(input), e.Number)
	}
	if line := 1 + int64(bytes.Count(input[:e.Offset], []byte{'\n'})); e.Line != line {
		t.Errorf("the error of byte %d in line %d names line %d", e.Offset, line, e.Line)
	}
	if s := e.Error(); len(s) > 2048 || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		t.Errorf("%q is not fit for a terminal", s)
	}
}

func model(input []byte) (keys []string, all bool) {
	keys = []string{}
	dec := jsontext.NewDecoder(bytes.NewReader(input), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		rest := input[dec.InputOffset():]
		if space := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n")); space >= event.MaxPayload {
			return keys, false // so much white space is rejected as well
		}
		value, err := dec.ReadValue()
		if err != nil {
			return keys, err == io.EOF
		}
		batch, err := event.Parse(value, event.Detect)
		if err != nil {
			return keys, false
		}
		for _, e := range batch.Events {
			keys = append(keys, e.Object.Key)
		}
	}
}

func TestModel(t *testing.T) {
	keys, all := model([]byte(line("a") + line("b") + "\n{}" + line("c")))
	if diff := cmp.Diff([]string{"a", "b"}, keys); diff != "" || all {
		t.Error(diff, all)
	}
}
