package buckettest

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
)

var headerTests = map[string]func(*testing.T, Harness){
	"headers": testHeaders, "headers/unsendable": testUnsendable,
}

func testHeaders(t *testing.T, h Harness) {
	all := bucket.Headers{
		CacheControl: "max-age=60", ContentDisposition: `attachment; filename="a.json"`,
		ContentEncoding: "gzip", ContentLanguage: "de",
	}
	if h.LosesHeaders {
		all = bucket.Headers{ContentEncoding: "gzip"}
	}
	for _, want := range []bucket.Headers{all, {}} {
		o := bucket.Object{Body: strings.NewReader("x"), Size: 1, ContentType: "application/json", Headers: want}
		if _, err := h.Store.Put(t.Context(), h.ref("k"), o, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		info, err := h.Store.Head(t.Context(), h.ref("k"))
		if err != nil {
			t.Fatal(err)
		}
		got, body, err := h.Store.Get(t.Context(), h.ref("k"))
		if err != nil {
			t.Fatal(err)
		}
		_ = body.Close()
		if h.MergesMetadata && want == (bucket.Headers{}) {
			continue
		}
		if info.Headers != want || got.Headers != want {
			t.Errorf("Head returns %+v, and Get %+v, want %+v", info.Headers, got.Headers, want)
		}
	}
}

// Nothing is sent, so the error must not be ambiguous.
func testUnsendable(t *testing.T, h Harness) {
	for name, o := range map[string]bucket.Object{
		"content type":        {ContentType: "text/plain\nX-Amz-Acl: public-read"},
		"Cache-Control":       {Headers: bucket.Headers{CacheControl: "max-age=1\r"}},
		"Content-Disposition": {Headers: bucket.Headers{ContentDisposition: "\x00"}},
		"Content-Encoding":    {Headers: bucket.Headers{ContentEncoding: "gzip\x7f"}},
		"Content-Language":    {Headers: bucket.Headers{ContentLanguage: "\x1bde"}},
		"metadata":            {Metadata: map[string]string{"a": "b\nc"}},
		"a name with a colon": {Metadata: map[string]string{"a:b": "c"}},
		"a name with a space": {Metadata: map[string]string{"a b": "c"}},
		"no name":             {Metadata: map[string]string{"": "c"}},
	} {
		o.Body, o.Size = strings.NewReader("x"), 1
		_, err := h.Store.Put(t.Context(), h.ref("k"), o, bucket.Condition{})
		wantError(t, "Put with a bad "+name, err, bucket.ErrInvalid)
	}
	h.wantAbsent(t, "k")
}
