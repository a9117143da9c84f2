package bucket_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
)

// copyCases differ from a publish, because the content is sent if the store refuses the copy.
var copyCases = []changeCase{
	{
		"403: the bytes are sent",
		func(w *world) { w.Next(buckettest.Put, denied) },
		outcome{sent: true, sure: true, calls: 2, content: "mine"},
	},
	{
		"501: the bytes are sent",
		func(w *world) { w.Next(buckettest.Put, buckettest.Answer(bucket.ErrInvalid)) },
		outcome{sent: true, sure: true, calls: 2, content: "mine"},
	},
	{
		"403 after one that is unanswered: the bytes are sent, and the publish is unsure",
		func(w *world) { w.Next(buckettest.Put, buckettest.Lost, denied) },
		outcome{sent: true, sure: false, calls: 3, content: "mine"},
	},
	{
		"403, and the bytes too",
		func(w *world) { w.Next(buckettest.Put, denied, denied) },
		outcome{err: bucket.ErrDenied, sent: true, sure: true, calls: 2},
	},
	{
		"403, and the answer to the bytes is lost",
		func(w *world) { w.Next(buckettest.Put, denied, buckettest.Landed) },
		outcome{sent: true, sure: true, calls: 2, content: "mine"},
	},
	{
		"the preparation fails: nothing was sent",
		func(w *world) { w.Next(buckettest.Put, buckettest.Answer(bucket.ErrUnavailable)) },
		outcome{err: bucket.ErrUnavailable, sure: true, calls: 1},
	},
	{
		"the source has changed",
		func(w *world) { w.Next(buckettest.Put, buckettest.Between(func() { w.source("else") })) },
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: true, calls: 1},
	},
}

func (w *world) source(text string) bucket.Source {
	w.t.Helper()
	from := event.Object{Bucket: w.ref.Bucket, Key: "in/" + w.ref.Key}
	etag, err := w.store.Put(w.t.Context(), from, bucket.Object{Body: strings.NewReader(text), Size: int64(len(text))}, bucket.Condition{})
	if err != nil {
		w.t.Fatal(err)
	}
	return bucket.Source{Ref: from, ETag: etag}
}

func (w *world) publishCopy(o *bucket.Output, from bucket.Source, methods bucket.CopyMethod) (bucket.Result, error) {
	return o.PublishCopy(w.t.Context(), stamp("mine"), from, methods, text("mine"), 4, "text/plain")
}

func TestPublishCopy(t *testing.T) {
	playCopies(t, bucket.CopyWhole, func(int, string) *world { return newWorld(t) })
}

func playCopies(t *testing.T, methods bucket.CopyMethod, newWorld func(i int, before string) *world) {
	cases := copyCases
	for _, tc := range publishCases {
		if tc.name != "403" && tc.name != "400" { // in copyCases
			cases = append(cases, tc)
		}
	}
	for i, tc := range cases {
		for _, before := range []string{"", "before"} {
			w := newWorld(i, before)
			t.Run(fmt.Sprintf("%s, pinned %q", tc.name, before), func(t *testing.T) {
				w.t = t
				from := w.source("mine")
				if before != "" {
					w.byOther(before)
				}
				want := tc.want
				if want.content == "" {
					want.content = before
				}
				o := w.pin()
				tc.arrange(w)
				r, err := w.publishCopy(o, from, methods)
				w.check(buckettest.Put, r, err, want)
			})
		}
	}
}

func TestCopySendsNoBytes(t *testing.T) {
	bytesSent := errors.New("the bytes are sent")
	for _, tc := range []struct {
		methods bucket.CopyMethod
		size    int64
		sends   bool
	}{
		{0, 4, true},
		{bucket.CopyWhole, 0, false},
		{bucket.CopyWhole, 5 << 30, false},
		{bucket.CopyWhole, 5<<30 + 1, true},
		{bucket.CopyParts, 0, true},
		{bucket.CopyParts, 5<<30 + 1, false},
		{bucket.CopyWhole | bucket.CopyParts, 5<<30 + 1, false},
	} {
		w := newWorld(t)
		from := w.source("mine")
		open := func() (io.ReadCloser, error) { return nil, bytesSent }
		_, err := w.pin().PublishCopy(t.Context(), stamp("mine"), from, tc.methods, open, tc.size, "")
		if errors.Is(err, bytesSent) != tc.sends || err != nil && !tc.sends {
			t.Errorf("methods %d, %d bytes: %v, want the bytes sent: %t", tc.methods, tc.size, err, tc.sends)
		}
	}
}
