package buckettest

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
)

var headerTests = map[string]func(*testing.T, Harness){"headers": testHeaders}

// testHeaders writes an object with its headers, and replaces it by one without.
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
			t.Errorf("Head tells %+v, Get %+v, want %+v", info.Headers, got.Headers, want)
		}
	}
}
