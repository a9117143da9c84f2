package buckettest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/pawlhq/pawl/bucket"
)

var streamTests = map[string]func(*testing.T, Harness){
	"stream/20MiB": testStream,
	"stream/part":  testReadPart,
}

const (
	streamSize = 20 << 20
	// enough for buffers, but not for the body
	streamMemory = 5 << 20
)

func noise() io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{17}), streamSize)
}

func testStream(t *testing.T, h Harness) {
	want := sha256.New()
	if _, err := io.Copy(want, noise()); err != nil {
		t.Fatal(err)
	}
	h.put(t, "warm-up", "x")
	h.wantContent(t, "warm-up", "x")
	h.measure(t, "Put", func() {
		if _, err := h.Store.Put(t.Context(), h.ref("k"), bucket.Object{Body: noise(), Size: streamSize}, bucket.Condition{IfAbsent: true}); err != nil {
			t.Fatal(err)
		}
	})
	got := sha256.New()
	h.measure(t, "Get", func() {
		info, body, err := h.Store.Get(t.Context(), h.ref("k"))
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		if n, err := io.Copy(got, body); err != nil || n != streamSize || info.Size != streamSize {
			t.Errorf("read %d of %d bytes: %v", n, info.Size, err)
		}
	})
	if g, w := hex.EncodeToString(got.Sum(nil)), hex.EncodeToString(want.Sum(nil)); g != w {
		t.Errorf("SHA-256 = %s, want %s", g, w)
	}
}

// measure fails if f allocates as much memory as a buffered body.
func (h Harness) measure(t *testing.T, what string, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > streamMemory && !h.InProcess {
		t.Errorf("%s of %d bytes allocated %d: it does not stream", what, streamSize, n)
	}
}

// testReadPart closes bodies that were read halfway.
func testReadPart(t *testing.T, h Harness) {
	if _, err := h.Store.Put(t.Context(), h.ref("k"), bucket.Object{Body: noise(), Size: streamSize}, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, body, err := h.Store.Get(t.Context(), h.ref("k"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(body, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		body.Close()
	}
	h.put(t, "k", "x")
	h.wantContent(t, "k", "x")
}
