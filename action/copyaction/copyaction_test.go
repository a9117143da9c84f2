package copyaction_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/copyaction"
	"github.com/pawlhq/pawl/action/internal/actiontest"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/internal/servertest"
)

func newHandler(t *testing.T) pawl.Handler {
	t.Helper()
	h, err := copyaction.New(copyaction.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestCopy(t *testing.T) {
	t.Run("in memory", func(t *testing.T) { follow(t, actiontest.New(t, newHandler(t))) })
	t.Run("gofakes3", func(t *testing.T) {
		srv := servertest.S3(t)
		store, err := s3bucket.New(t.Context(), s3bucket.Config{
			Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey,
		})
		if err != nil {
			t.Fatal(err)
		}
		w := actiontest.New(t, newHandler(t))
		w.Objects, w.In, w.Out = store, srv.NewBucket(t), srv.NewBucket(t)
		follow(t, w)
	})
}

// follow puts, overwrites and removes objects, and looks at the copies.
func follow(t *testing.T, w *actiontest.World) {
	large := make([]byte, 20<<20)
	rnd := rand.NewChaCha8([32]byte{1})
	_, _ = rnd.Read(large)
	contents := map[string][]byte{"large.bin": large, "empty": {}, "dir/a b+c%2B.txt": []byte("text")}
	for i := range 30 {
		contents[fmt.Sprintf("many/%d", i)] = fmt.Append(nil, i)
	}
	for key, content := range contents {
		w.Put(key, "text/x-test", content)
	}
	w.Put("empty", "text/plain", []byte("not yet"))
	w.Put("empty", "text/x-test", nil)
	w.Run()
	for key, want := range contents {
		w.Settled(key)
		got, contentType, ok := w.Output(key)
		if !ok || !bytes.Equal(got, want) || contentType != "text/x-test" {
			t.Errorf("copy of %q: %d bytes of %d, %s, there: %v", key, len(got), len(want), contentType, ok)
		}
	}
	w.Remove("large.bin")
	w.Put("empty", "text/plain", []byte("now"))
	w.Run()
	if _, _, ok := w.Output("large.bin"); ok {
		t.Error("the copy of a removed object is still there")
	}
	if got, contentType, _ := w.Output("empty"); string(got) != "now" || contentType != "text/plain" {
		t.Errorf("copy of the overwritten object: %q, %s", got, contentType)
	}
}

func TestPipelineWithoutOutput(t *testing.T) {
	w := actiontest.New(t, newHandler(t))
	w.Put("a", "", []byte("x"))
	w.RunWithoutOutput()
	if got, want := w.Dead("a", true), "pipeline action has no output to write to: give it one (to)"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}
