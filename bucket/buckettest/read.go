package buckettest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

var readTests = map[string]func(*testing.T, Harness){
	"read/info":      testInfo,
	"read/empty":     testEmpty,
	"read/missing":   testMissing,
	"read/overwrite": testOverwrite,
	"read/versions":  testVersions,
	"read/cancelled": testReadCancelled,
}

func testInfo(t *testing.T, h Harness) {
	o := object("hello")
	o.ContentType = "text/x-greeting"
	o.Metadata = map[string]string{"pawl-source": `x "y" =z; ,~`, "pawl-fence": "17"}
	before := time.Now()
	etag, err := h.Store.Put(t.Context(), h.ref("k"), o, bucket.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	head, err := h.Store.Head(t.Context(), h.ref("k"))
	if err != nil {
		t.Fatal(err)
	}
	// MD5 of the content
	const md5 = "5d41402abc4b2a76b9719d911017c592"
	want := bucket.Info{
		Key: "k", ETag: md5, ModTime: head.ModTime, Size: 5,
		ContentType: o.ContentType, Metadata: o.Metadata,
	}
	if diff := cmp.Diff(want, head); diff != "" {
		t.Errorf("Head (-want +got):\n%s", diff)
	}
	if etag != md5 {
		t.Errorf("Put's ETag = %q, want %q", etag, md5)
	}
	if d := head.ModTime.Sub(before).Abs(); d > time.Minute {
		t.Errorf("ModTime %v is %v from now", head.ModTime, d)
	}
	got, body, err := h.Store.Get(t.Context(), h.ref("k"))
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if diff := cmp.Diff(head, got); diff != "" {
		t.Errorf("Get's Info differs from Head's (-head +get):\n%s", diff)
	}
	h.wantContent(t, "k", "hello")
}

func testEmpty(t *testing.T, h Harness) {
	h.put(t, "k", "")
	if _, err := h.Store.Put(t.Context(), h.ref("nil"), bucket.Object{}, bucket.Condition{}); err != nil {
		t.Errorf("Put without a body: %v", err)
	}
	for _, key := range []string{"k", "nil"} {
		info, err := h.Store.Head(t.Context(), h.ref(key))
		if err != nil || info.Size != 0 || len(info.Metadata) != 0 {
			t.Errorf("Head %q = %+v, %v, want an empty object without metadata", key, info, err)
		}
		h.wantContent(t, key, "")
	}
}

func testMissing(t *testing.T, h Harness) {
	h.wantAbsent(t, "k")
	_, _, err := h.Store.Get(t.Context(), h.ref("k"))
	wantError(t, "Get", err, bucket.ErrNotFound)
}

func testOverwrite(t *testing.T, h Harness) {
	o := object("one")
	o.Metadata = map[string]string{"a": "1"}
	if _, err := h.Store.Put(t.Context(), h.ref("k"), o, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	etag := h.put(t, "k", "two")
	info, err := h.Store.Head(t.Context(), h.ref("k"))
	if err != nil || info.ETag != etag || (len(info.Metadata) != 0) != h.MergesMetadata {
		t.Errorf("Head = %+v, %v, want ETag %s and no metadata of the object before", info, err, etag)
	}
	h.wantContent(t, "k", "two")
}

func testVersions(t *testing.T, h Harness) {
	if h.Versioned == "" {
		return
	}
	h.Bucket = h.Versioned
	var versions []event.Object
	for _, text := range []string{"one", "two"} {
		h.put(t, "k", text)
		info, err := h.Store.Head(t.Context(), h.ref("k"))
		if err != nil || info.VersionID == "" {
			t.Fatalf("Head = %+v, %v, want a version id", info, err)
		}
		versions = append(versions, event.Object{Bucket: h.Bucket, Key: "k", VersionID: info.VersionID})
	}
	if err := h.Store.Delete(t.Context(), h.ref("k"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	h.wantAbsent(t, "k")
	for i, want := range []string{"one", "two"} {
		if got := get(t, h.Store, versions[i]); got != want {
			t.Errorf("version %d = %q, want %q", i, got, want)
		}
	}
	if err := h.Store.Delete(t.Context(), versions[0], bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	_, err := h.Store.Head(t.Context(), versions[0])
	wantError(t, "Head of a removed version", err, bucket.ErrNotFound)
	if got := get(t, h.Store, versions[1]); got != "two" {
		t.Errorf("the other version = %q, want two", got)
	}
}

func testReadCancelled(t *testing.T, h Harness) {
	h.put(t, "k", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Store.Head(ctx, h.ref("k"))
	wantError(t, "Head", err, bucket.ErrUnavailable)
	_, _, err = h.Store.Get(ctx, h.ref("k"))
	wantError(t, "Get", err, bucket.ErrUnavailable)
	for _, err := range h.Store.List(ctx, h.Bucket, "", "") {
		wantError(t, "List", err, bucket.ErrUnavailable)
	}
}
