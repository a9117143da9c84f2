package bucket_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

// FuzzStamp also checks that foreign metadata never passes for a stamp.
func FuzzStamp(f *testing.F) {
	for _, seed := range [][4]string{
		{"gray", "etag=abc&mtime=1&meta=&size=4", "0123456789abcdef", "4"},
		{"é", "a\nb", "n", "1000"}, {"", "", "", ""}, {" p", "s ", "n n", "+4"}, {"p", "\x7f", "\x00", "04"}, {"p", "s", "mine", "-4"},
		{"p", "s: t", "a,b;c=\"d\"", "4 "}, {"p", "\xff", "é", "４"},
	} {
		f.Add(seed[0], seed[1], seed[2], int64(17), seed[1], seed[2], seed[3])
		f.Add(seed[0], seed[1], seed[2], int64(-1), "", "other", "4")
		f.Add("gray", "s", "mine", int64(1), seed[1], "mine", seed[3])
	}
	f.Fuzz(func(t *testing.T, pipeline, source, nonce string, fence int64, itsSource, itsNonce, itsSize string) {
		s := bucket.Stamp{Pipeline: pipeline, Source: source, Fence: fence, Nonce: nonce}
		if fuzzStamp(t, s) {
			fuzzForeign(t, s, map[string]string{"pawl-source": itsSource, "pawl-nonce": itsNonce, "pawl-size": itsSize})
		}
	})
}

func fuzzStamp(t *testing.T, s bucket.Stamp) bool {
	w := newWorld(t)
	r, err := w.pin().Publish(t.Context(), s, text("mine"), 4, "")
	if want := s.Nonce != "" && survives(s.Pipeline) && survives(s.Source) && survives(s.Nonce); want != (err == nil) {
		t.Fatalf("%+v: %v", s, err)
	}
	if err != nil {
		if !errors.Is(err, bucket.ErrInvalid) || r.Sent || !r.Sure || w.Calls(buckettest.Put) != 0 {
			t.Errorf("%+v, %v: want nothing sent", r, err)
		}
		return false
	}
	if got, ok := w.pin().Source(); !ok || got != s.Source {
		t.Errorf("the source %q is recorded as %q, %v", s.Source, got, ok)
	}
	info, err := w.store.Head(t.Context(), w.ref)
	if err != nil {
		t.Fatal(err)
	}
	checkHeaders(t, info.Metadata)
	if info.Metadata["pawl-fence"] != strconv.FormatInt(s.Fence, 10) {
		t.Errorf("the fence %d is recorded as %q", s.Fence, info.Metadata["pawl-fence"])
	}
	return true
}

// survives reports whether every store returns a text unchanged.
func survives(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) && strings.TrimSpace(s) == s
}

func checkHeaders(t *testing.T, metadata map[string]string) {
	sent := http.Header{}
	for name, value := range metadata {
		sent.Set(name, value)
	}
	var wire bytes.Buffer
	if err := sent.Write(&wire); err != nil {
		t.Fatal(err)
	}
	wire.WriteString("\r\n")
	got, err := textproto.NewReader(bufio.NewReader(&wire)).ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range metadata {
		if got.Get(name) != value {
			t.Errorf("%s: %q arrives as %q", name, value, got.Get(name))
		}
	}
}

func fuzzForeign(t *testing.T, s bucket.Stamp, metadata map[string]string) {
	if (&bucket.Object{Metadata: metadata}).Check() != nil {
		return // HTTP cannot carry such metadata
	}
	w := newWorld(t)
	o := w.pin()
	w.Next(buckettest.Put, func(ctx context.Context, _ func(context.Context) error) error {
		other := bucket.Object{Body: strings.NewReader("mine"), Size: 4, Metadata: metadata}
		if _, err := w.store.Put(ctx, w.ref, other, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		return fmt.Errorf("%w: timed out", bucket.ErrUnclear)
	})
	r, err := o.Publish(t.Context(), s, text("mine"), 4, "")
	whole := metadata["pawl-size"] == "4"
	own := whole && metadata["pawl-nonce"] == s.Nonce
	if own != (err == nil) || !own && !errors.Is(err, bucket.ErrOutputChanged) || r.Sure != own || !r.Sent || w.Calls(buckettest.Put) != 1 {
		t.Errorf("metadata %q with nonce %q: %+v, %v", metadata, s.Nonce, r, err)
	}
	source, ok := w.pin().Source()
	if ok != whole || ok && source != metadata["pawl-source"] || !ok && source != "" {
		t.Errorf("%q records the source %q, %v", metadata, source, ok)
	}
}
