package copyaction_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/copyaction"
	"github.com/pawlhq/pawl/action/internal/actiontest"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

func newHandler(t *testing.T) *copyaction.Handler {
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
		w := actiontest.New(t, newHandler(t))
		w.Objects, w.In, w.Out = open(t, srv), srv.NewBucket(t), srv.NewBucket(t)
		follow(t, w)
	})
}

func open(t *testing.T, srv *servertest.Server) *s3bucket.Store {
	t.Helper()
	store, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

type opened struct {
	*s3bucket.Store
	mu     sync.Mutex
	inputs map[string]int
	bucket string
}

// Get implements [bucket.Store].
func (o *opened) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	if ref.Bucket == o.bucket {
		o.mu.Lock()
		o.inputs[ref.Key]++
		o.mu.Unlock()
	}
	return o.Store.Get(ctx, ref)
}

func TestStoreCopies(t *testing.T) {
	check := func(t *testing.T, srv *servertest.Server) {
		h := newHandler(t)
		w := actiontest.New(t, h)
		w.In, w.Out = srv.NewBucket(t), srv.NewBucket(t)
		store := &opened{Store: open(t, srv), inputs: map[string]int{}, bucket: w.In}
		w.Objects = store
		methods, err := h.Prove(t.Context(), store, pawl.Output{Bucket: w.Out, Prefix: "made/"})
		if err != nil || methods != srv.CopyConditions {
			t.Errorf("Prove found the methods %d, want %d; %v", methods, srv.CopyConditions, err)
		}
		follow(t, w)
		for key, streams := range map[string]bool{
			"many/1":           methods&bucket.CopyWhole == 0,
			"dir/a b+c%2B.txt": methods&bucket.CopyWhole == 0,
			"still.bin":        methods == 0,
		} {
			if streamed := store.inputs[key] > 0; streamed != streams {
				t.Errorf("content of %s streamed: %t, want %t", key, streamed, streams)
			}
		}
	}
	t.Run("gofakes3", func(t *testing.T) { check(t, servertest.S3(t)) })
	servertest.Each(t, servertest.Options{}, check)
	t.Run("copies", func(t *testing.T) {
		check(t, servertest.WithCopyConditions(t, servertest.MinIO(t, servertest.Options{})))
	})
}

func TestProveFails(t *testing.T) {
	srv := servertest.S3(t)
	methods, err := newHandler(t).Prove(t.Context(), open(t, srv), pawl.Output{Bucket: "missing"})
	if !errors.Is(err, bucket.ErrNoBucket) || methods != 0 {
		t.Errorf("Prove in a missing bucket: %d, %v, want ErrNoBucket", methods, err)
	}
}

func follow(t *testing.T, w *actiontest.World) {
	large := make([]byte, 20<<20)
	rnd := rand.NewChaCha8([32]byte{1})
	_, _ = rnd.Read(large)
	contents := map[string][]byte{"large.bin": large, "still.bin": large, "empty": {}, "dir/a b+c%2B.txt": []byte("text")}
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
			t.Errorf("copy of %q: %d bytes of %d, %s, exists: %v", key, len(got), len(want), contentType, ok)
		}
	}
	w.Remove("large.bin")
	w.Put("empty", "text/plain", []byte("now"))
	w.Run()
	if _, _, ok := w.Output("large.bin"); ok {
		t.Error("the copy of a removed object still exists")
	}
	if got, contentType, _ := w.Output("empty"); string(got) != "now" || contentType != "text/plain" {
		t.Errorf("copy of the overwritten object: %q, %s", got, contentType)
	}
}

func TestPipelineWithoutOutput(t *testing.T) {
	w := actiontest.New(t, newHandler(t))
	w.Put("a", "", []byte("x"))
	w.RunWithoutOutput()
	if got, want := w.Dead("a", true), "pipeline action has no output: configure one (to)"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}
