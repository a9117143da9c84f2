package buckettest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
)

var putTests = map[string]func(*testing.T, Harness){
	"put/if-absent":        testIfAbsent,
	"put/if-match":         testIfMatch,
	"put/if-match-missing": testIfMatchMissing,
	"put/same-bytes":       testSameBytes,
	"put/whole-or-nothing": testWholeOrNothing,
	"put/broken-body":      testBrokenBody,
	"put/cancelled":        testPutCancelled,
}

func (h Harness) putIf(t *testing.T, key, text string, c bucket.Condition) (string, error) {
	t.Helper()
	return h.Store.Put(t.Context(), h.ref(key), object(text), c)
}

func testIfAbsent(t *testing.T, h Harness) {
	absent := bucket.Condition{IfAbsent: true}
	if _, err := h.putIf(t, "k", "one", absent); err != nil {
		t.Fatalf("Put of a new object: %v", err)
	}
	_, err := h.putIf(t, "k", "two", absent)
	wantError(t, "Put of an existing object", err, bucket.ErrPrecondition)
	h.wantContent(t, "k", "one")
	if err := h.Store.Delete(t.Context(), h.ref("k"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.putIf(t, "k", "three", absent); err != nil {
		t.Errorf("Put of a removed object: %v", err)
	}
}

func testIfMatch(t *testing.T, h Harness) {
	first := h.put(t, "k", "one")
	second, err := h.putIf(t, "k", "two", bucket.Condition{IfMatch: first})
	if err != nil {
		t.Fatalf("Put over the matching ETag: %v", err)
	}
	_, err = h.putIf(t, "k", "three", bucket.Condition{IfMatch: first})
	wantError(t, "Put over another ETag", err, bucket.ErrPrecondition)
	h.wantContent(t, "k", "two")
	if _, err := h.putIf(t, "k", "four", bucket.Condition{IfMatch: second}); err != nil {
		t.Errorf("Put over the ETag that Put returned: %v", err)
	}
}

func testIfMatchMissing(t *testing.T, h Harness) {
	etag := h.put(t, "k", "one")
	if err := h.Store.Delete(t.Context(), h.ref("k"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	_, err := h.putIf(t, "k", "two", bucket.Condition{IfMatch: etag})
	wantError(t, "Put over a removed object", err, bucket.ErrPrecondition)
	_, err = h.putIf(t, "never", "two", bucket.Condition{IfMatch: etag})
	wantError(t, "Put over an object that never existed", err, bucket.ErrPrecondition)
	h.wantAbsent(t, "k")
}

// The ETag depends only on the content, so IfMatch does not detect this overwrite.
func testSameBytes(t *testing.T, h Harness) {
	first := h.put(t, "k", "same")
	o := object("same")
	o.Metadata = map[string]string{"by": "another"}
	second, err := h.Store.Put(t.Context(), h.ref("k"), o, bucket.Condition{})
	if err != nil || first != second {
		t.Fatalf("ETags of the same content: %q and %q (%v), want them equal", first, second, err)
	}
	if _, err := h.putIf(t, "k", "new", bucket.Condition{IfMatch: first}); err != nil {
		t.Errorf("Put over the same bytes of another writer: %v", err)
	}
}

// Some bodies are so small that they are sent before the error is detected.
func testWholeOrNothing(t *testing.T, h Harness) {
	for _, size := range []int64{1, 10, 100_000, 3 << 20} {
		full := strings.Repeat("x", int(size))
		for name, body := range map[string]io.Reader{
			"long":         strings.NewReader(full + "x"),
			"short":        strings.NewReader(full[1:]),
			"long stream":  io.MultiReader(strings.NewReader(full + "x")),
			"short stream": io.MultiReader(strings.NewReader(full[1:])),
		} {
			key := fmt.Sprint(name, size)
			_, err := h.Store.Put(t.Context(), h.ref(key), bucket.Object{Body: body, Size: size}, bucket.Condition{})
			stream := strings.HasSuffix(name, "stream")
			if !stream || !errors.Is(err, bucket.ErrUnclear) {
				wantError(t, "Put of a body that is "+name, err, bucket.ErrInvalid)
			}
			if !stream || !h.KeepsCutBodies {
				h.wantAbsent(t, key)
			}
		}
	}
	_, err := h.Store.Put(t.Context(), h.ref("zero"), bucket.Object{Body: strings.NewReader("x")}, bucket.Condition{})
	wantError(t, "Put of a one-byte body with Size 0", err, bucket.ErrInvalid)
	h.wantAbsent(t, "zero")
}

// To the store, a body that fails halfway looks like a killed writer.
func testBrokenBody(t *testing.T, h Harness) {
	broken := errors.New("the disk broke")
	for _, size := range []int64{10, 100_000, 3 << 20} {
		half := strings.NewReader(strings.Repeat("x", int(size/2)))
		for name, body := range map[string]io.Reader{
			"stream": io.MultiReader(half, failing{broken}),
			"file":   &failsLater{ReadSeeker: strings.NewReader(strings.Repeat("x", int(size))), err: broken},
		} {
			key := fmt.Sprint(name, size)
			_, err := h.Store.Put(t.Context(), h.ref(key), bucket.Object{Body: body, Size: size}, bucket.Condition{})
			if err == nil && h.InProcess && name == "file" {
				continue // it reads the body only once
			}
			wantError(t, "Put of a broken "+name, err, bucket.ErrUnclear)
			if !errors.Is(err, broken) {
				t.Errorf("Put of a broken %s = %v, want the cause in the error", name, err)
			}
			if name != "stream" || !h.KeepsCutBodies {
				h.wantAbsent(t, key)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type failsLater struct {
	io.ReadSeeker
	err  error
	read int64
	full bool
}

func (f *failsLater) Read(p []byte) (int, error) {
	if f.full {
		if f.read == 0 {
			return 0, f.err
		}
		p = p[:min(int64(len(p)), f.read)]
	}
	n, err := f.ReadSeeker.Read(p)
	if f.full {
		f.read -= int64(n)
		return n, err
	}
	f.read += int64(n)
	if err == io.EOF {
		f.full, f.read = true, f.read/2
	}
	return n, err
}

func testPutCancelled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Store.Put(ctx, h.ref("k"), object("x"), bucket.Condition{})
	wantError(t, "Put", err, bucket.ErrUnclear)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Put = %v, want the cancellation in the error", err)
	}
	err = h.Store.Delete(ctx, h.ref("k"), bucket.Condition{})
	wantError(t, "Delete", err, bucket.ErrUnclear)
}
