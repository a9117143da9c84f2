package buckettest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

var copyTests = map[string]func(*testing.T, Harness){
	"copy/what-it-writes":  eachMethod(testCopy),
	"copy/if-absent":       eachMethod(testCopyIfAbsent),
	"copy/if-match":        eachMethod(testCopyIfMatch),
	"copy/changed-source":  eachMethod(testCopyChangedSource),
	"copy/version":         eachMethod(testCopyVersion),
	"copy/missing-buckets": eachMethod(testCopyMissingBuckets),
	"copy/race":            eachMethod(testCopyRace),
}

type copier struct {
	Harness
	method bucket.CopyMethod
}

func eachMethod(test func(*testing.T, copier)) func(*testing.T, Harness) {
	return func(t *testing.T, h Harness) {
		for _, m := range []bucket.CopyMethod{bucket.CopyWhole, bucket.CopyParts} {
			if h.CopyConditions&m != 0 {
				test(t, copier{h, m})
			}
		}
	}
}

func (c copier) key(name string) string { return fmt.Sprint(c.method, "/", name) }

func (c copier) source(t *testing.T, key, text string) bucket.Source {
	t.Helper()
	o := object(text)
	o.ContentType, o.Metadata = "text/source", map[string]string{"of": "source"}
	etag, err := c.Store.Put(t.Context(), c.ref(key), o, bucket.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return bucket.Source{Ref: c.ref(key), ETag: etag}
}

func (c copier) copy(t *testing.T, from bucket.Source, key, text string, cond bucket.Condition) (string, error) {
	t.Helper()
	o := bucket.Object{Size: int64(len(text)), ContentType: "text/copy", Metadata: map[string]string{"of": "copy"}}
	return c.Store.(bucket.Copier).Copy(t.Context(), c.method, from, c.ref(key), o, cond)
}

func testCopy(t *testing.T, c copier) {
	for _, name := range []string{"plain", "a b+c%2B/é&?x=y#z.txt", "a:b@c;d,e=f$g"} {
		from := c.source(t, c.key("in/"+name), "text")
		etag, err := c.copy(t, from, c.key("out/"+name), "text", bucket.Condition{IfAbsent: true})
		if err != nil {
			t.Errorf("Copy of %q: %v", name, err)
			continue
		}
		info, err := c.Store.Head(t.Context(), c.ref(c.key("out/"+name)))
		if err != nil || info.ETag != etag || info.ContentType != "text/copy" {
			t.Errorf("copy of %q: ETag %q, want %q; content type %q; %v", name, info.ETag, etag, info.ContentType, err)
		}
		if diff := cmp.Diff(map[string]string{"of": "copy"}, info.Metadata); diff != "" {
			t.Errorf("metadata of the copy of %q (-want +got):\n%s", name, diff)
		}
		c.wantContent(t, c.key("out/"+name), "text")
		if _, err := c.Store.Put(t.Context(), c.ref(c.key("out/"+name)), object("next"), bucket.Condition{IfMatch: etag}); err != nil {
			t.Errorf("Put over the ETag that Copy returned: %v", err)
		}
	}
}

func testCopyIfAbsent(t *testing.T, c copier) {
	from, key := c.source(t, c.key("source"), "new"), c.key("k")
	c.put(t, key, "old")
	_, err := c.copy(t, from, key, "new", bucket.Condition{IfAbsent: true})
	wantError(t, "Copy over an existing object", err, bucket.ErrPrecondition)
	c.wantContent(t, key, "old")
}

func testCopyIfMatch(t *testing.T, c copier) {
	from, key := c.source(t, c.key("source"), "new"), c.key("k")
	first := c.put(t, key, "first")
	second := c.put(t, key, "second")
	_, err := c.copy(t, from, key, "new", bucket.Condition{IfMatch: first})
	wantError(t, "Copy over another ETag", err, bucket.ErrPrecondition)
	c.wantContent(t, key, "second")
	_, err = c.copy(t, from, c.key("never"), "new", bucket.Condition{IfMatch: first})
	wantError(t, "Copy over an object that never existed", err, bucket.ErrPrecondition)
	c.wantAbsent(t, c.key("never"))
	if _, err = c.copy(t, from, key, "new", bucket.Condition{IfMatch: second}); err != nil {
		t.Errorf("Copy over the matching ETag: %v", err)
	}
	c.wantContent(t, key, "new")
}

func testCopyChangedSource(t *testing.T, c copier) {
	from := c.source(t, c.key("source"), "one")
	c.source(t, c.key("source"), "two")
	absent := bucket.Condition{IfAbsent: true}
	_, err := c.copy(t, from, c.key("k"), "one", absent)
	wantError(t, "Copy of a source that has changed", err, bucket.ErrPrecondition)
	if err := c.Store.Delete(t.Context(), from.Ref, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	_, err = c.copy(t, from, c.key("k"), "one", absent)
	wantError(t, "Copy of a source that is gone", err, bucket.ErrPrecondition)
	c.wantAbsent(t, c.key("k"))
}

func testCopyVersion(t *testing.T, c copier) {
	if c.Versioned == "" {
		return
	}
	h := c
	h.Bucket = c.Versioned
	from := h.source(t, h.key("source"), "one")
	info, err := h.Store.Head(t.Context(), from.Ref)
	if err != nil {
		t.Fatal(err)
	}
	h.source(t, h.key("source"), "two")
	from.Ref.VersionID = info.VersionID
	if _, err := h.copy(t, from, h.key("k"), "one", bucket.Condition{IfAbsent: true}); err != nil {
		t.Errorf("Copy of an old version: %v", err)
	}
	h.wantContent(t, h.key("k"), "one")
}

func testCopyMissingBuckets(t *testing.T, c copier) {
	from := c.source(t, c.key("source"), "text")
	elsewhere := event.Object{Bucket: c.Bucket + "-other", Key: "k"}
	_, err := c.Store.(bucket.Copier).Copy(t.Context(), c.method, from, elsewhere, bucket.Object{Size: 4}, bucket.Condition{IfAbsent: true})
	wantError(t, "Copy to a missing bucket", err, bucket.ErrNoBucket)
	from.Ref.Bucket += "-other"
	_, err = c.copy(t, from, c.key("k"), "text", bucket.Condition{IfAbsent: true})
	wantError(t, "Copy from a missing bucket", err, bucket.ErrNoBucket)
}

func testCopyRace(t *testing.T, c copier) {
	sources := make([]bucket.Source, racers)
	for i := range sources {
		sources[i] = c.source(t, c.key(fmt.Sprint("source", i)), fmt.Sprintf("by %02d", i))
	}
	for range rounds / 2 {
		cond := bucket.Condition{IfMatch: c.put(t, c.key("k"), "before")}
		winners := race(t, func(i int) error {
			_, err := c.copy(t, sources[i], c.key("k"), "by 00", cond)
			return err
		})
		if len(winners) > 1 {
			t.Errorf("winners: %v, want one", winners)
		}
		c.wantContent(t, c.key("k"), fmt.Sprintf("by %02d", winners[0]))
	}
}
