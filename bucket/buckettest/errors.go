package buckettest

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

var errorTests = map[string]func(*testing.T, Harness){
	"errors/no-bucket": testNoBucket,
	"errors/denied":    testDenied,
	"errors/invalid":   testInvalid,
}

func each(t *testing.T, s bucket.Store, ref event.Object, c bucket.Condition, check func(what string, err error)) {
	t.Helper()
	_, err := s.Head(t.Context(), ref)
	check("Head", err)
	_, _, err = s.Get(t.Context(), ref)
	check("Get", err)
	_, err = s.Put(t.Context(), ref, object("x"), c)
	check("Put", err)
	check("Delete", s.Delete(t.Context(), ref, bucket.Condition{}))
}

func testNoBucket(t *testing.T, h Harness) {
	ref := event.Object{Bucket: h.Bucket + "-gone", Key: "k"}
	for _, c := range []bucket.Condition{{}, {IfAbsent: true}, {IfMatch: "5d41402abc4b2a76b9719d911017c592"}} {
		each(t, h.Store, ref, c, func(what string, err error) {
			wantError(t, what, err, bucket.ErrNoBucket)
			wantNamed(t, what, err, "s3://"+ref.Bucket+"/k")
		})
	}
	for _, err := range h.Store.List(t.Context(), ref.Bucket, "", "") {
		wantError(t, "List", err, bucket.ErrNoBucket)
	}
}

func testDenied(t *testing.T, h Harness) {
	if h.Denied == nil {
		return
	}
	h.put(t, "k", "x")
	for _, key := range []string{"k", "absent"} {
		each(t, h.Denied, h.ref(key), bucket.Condition{}, func(what string, err error) {
			wantError(t, what, err, bucket.ErrDenied)
		})
	}
	for _, err := range h.Denied.List(t.Context(), h.Bucket, "", "") {
		wantError(t, "List", err, bucket.ErrDenied)
	}
	h.wantContent(t, "k", "x")
}

func testInvalid(t *testing.T, h Harness) {
	for _, key := range []string{"", strings.Repeat("k", 1025)} {
		_, err := h.Store.Put(t.Context(), h.ref(key), object("x"), bucket.Condition{})
		wantError(t, "Put", err, bucket.ErrInvalid)
	}
	hostile := "line\nfeed"
	_, err := h.Store.Head(t.Context(), h.ref(hostile))
	wantNamed(t, "Head", err, `line\nfeed`)
}

func wantNamed(t *testing.T, what string, err error, object string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	if s := err.Error(); !strings.Contains(s, object) || strings.Contains(s, "\n") {
		t.Errorf("%s = %q, want %s named in one line", what, s, object)
	}
}
