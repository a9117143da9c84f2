package bucket_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/bucket/membucket"
)

// changeCase is a row of the tables of Output.
type changeCase struct {
	name    string
	arrange func(w *world) // called after Pin
	want    outcome
}

var (
	conflict = buckettest.Answer(bucket.ErrConflict)
	denied   = buckettest.Answer(bucket.ErrDenied)
	blind    = buckettest.Answer(bucket.ErrUnavailable)
)

// publishCases have the same outcome for an absent and a present output. An empty content means
// the pinned one.
var publishCases = []changeCase{
	{
		"200",
		func(*world) {},
		outcome{sent: true, sure: true, calls: 1, content: "mine"},
	},
	{
		"412, own nonce: a retry below",
		func(w *world) { w.Next(buckettest.Put, buckettest.Twice) },
		outcome{sent: true, sure: true, calls: 1, content: "mine"},
	},
	{
		"412, own nonce: the try before had landed late, but nobody can know",
		func(w *world) {
			var land func() error
			w.Next(buckettest.Put, buckettest.Late(&land), buckettest.Between(func() {
				if err := land(); err != nil {
					w.t.Error(err)
				}
			}))
		},
		outcome{sent: true, sure: false, calls: 2, content: "mine"},
	},
	{
		"412, own nonce, of a try that was sent twice: the try before is unanswered",
		func(w *world) { w.Next(buckettest.Put, buckettest.Lost, buckettest.Twice) },
		outcome{sent: true, sure: false, calls: 2, content: "mine"},
	},
	{
		"412, another's",
		func(w *world) { w.byOther("other") },
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: true, calls: 1, content: "other"},
	},
	{
		"412, another's, after one that is unanswered",
		func(w *world) {
			w.Next(buckettest.Put, buckettest.Lost, buckettest.Between(func() { w.byOther("other") }))
		},
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: false, calls: 2, content: "other"},
	},
	{
		"412, HEAD fails",
		func(w *world) { w.byOther("other"); w.Next(buckettest.Head, blind) },
		outcome{err: bucket.ErrUnclear, sent: true, sure: false, calls: 1, content: "other"},
	},
	{
		"412, HEAD denied",
		func(w *world) { w.byOther("other"); w.Next(buckettest.Head, denied) },
		outcome{err: bucket.ErrUnclear, sent: true, sure: false, calls: 1, content: "other"},
	},
	{
		"409 twice",
		func(w *world) { w.Next(buckettest.Put, conflict, conflict) },
		outcome{sent: true, sure: true, calls: 3, content: "mine"},
	},
	{
		"409 without end",
		func(w *world) { w.Next(buckettest.Put, conflict, conflict, conflict) },
		outcome{err: bucket.ErrConflict, sent: true, sure: true, calls: 3},
	},
	{
		"403",
		func(w *world) { w.Next(buckettest.Put, denied) },
		outcome{err: bucket.ErrDenied, sent: true, sure: true, calls: 1},
	},
	{
		"400",
		func(w *world) { w.Next(buckettest.Put, buckettest.Answer(bucket.ErrInvalid)) },
		outcome{err: bucket.ErrInvalid, sent: true, sure: true, calls: 1},
	},
	{
		"bucket gone, after one that is unanswered",
		func(w *world) { w.Next(buckettest.Put, buckettest.Lost, buckettest.Answer(bucket.ErrNoBucket)) },
		outcome{err: bucket.ErrNoBucket, sent: true, sure: false, calls: 2},
	},
	{
		"unclear, own nonce",
		func(w *world) { w.Next(buckettest.Put, buckettest.Landed) },
		outcome{sent: true, sure: true, calls: 1, content: "mine"},
	},
	{
		"unclear twice, own nonce: one of the two is unanswered",
		func(w *world) { w.Next(buckettest.Put, buckettest.Lost, buckettest.Landed) },
		outcome{sent: true, sure: false, calls: 2, content: "mine"},
	},
	{
		"unclear, as pinned, then 200",
		func(w *world) { w.Next(buckettest.Put, buckettest.Lost) },
		outcome{sent: true, sure: false, calls: 2, content: "mine"},
	},
	{
		"unclear, as pinned, without end",
		func(w *world) { w.Next(buckettest.Put, buckettest.Lost, buckettest.Lost, buckettest.Lost) },
		outcome{err: bucket.ErrUnclear, sent: true, sure: false, calls: 3},
	},
	{
		"unclear, something else",
		func(w *world) { w.byOther("other"); w.Next(buckettest.Put, buckettest.Lost) },
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: false, calls: 1, content: "other"},
	},
	{
		"unclear, landed and then overwritten",
		func(w *world) {
			w.Next(buckettest.Put, buckettest.Landed)
			w.Next(buckettest.Head, buckettest.Between(func() { w.byOther("other") }))
		},
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: false, calls: 1, content: "other"},
	},
	{
		"unclear, HEAD fails",
		func(w *world) { w.Next(buckettest.Put, buckettest.Landed); w.Next(buckettest.Head, blind) },
		outcome{err: bucket.ErrUnclear, sent: true, sure: false, calls: 1, content: "mine"},
	},
	{
		"unclear, HEAD says the bucket is gone",
		func(w *world) {
			w.Next(buckettest.Put, buckettest.Lost)
			w.Next(buckettest.Head, buckettest.Answer(bucket.ErrNoBucket))
		},
		outcome{err: bucket.ErrUnclear, sent: true, sure: false, calls: 1},
	},
	{
		"an error of no kind is unclear",
		func(w *world) {
			oops := buckettest.Answer(errors.New("oops"))
			w.Next(buckettest.Put, oops, oops, oops)
		},
		outcome{err: bucket.ErrUnclear, sent: true, sure: false, calls: 3},
	},
	{
		"412, own nonce, but only a part of it: not landed",
		func(w *world) { w.cutOff() },
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: true, calls: 1, content: "m"},
	},
	{
		"unclear, own nonce, but only a part of it: not landed",
		func(w *world) {
			w.Next(buckettest.Put, func(ctx context.Context, do func(context.Context) error) error {
				w.cutOff()
				return buckettest.Lost(ctx, do)
			})
		},
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: false, calls: 1, content: "m"},
	},
}

// cutOff stores one byte of four, like a store that keeps truncated bodies.
func (w *world) cutOff() {
	_, err := w.store.Put(w.t.Context(), w.ref, bucket.Object{
		Body: strings.NewReader("m"), Size: 1,
		Metadata: map[string]string{"pawl-nonce": "mine", "pawl-size": "4", "pawl-source": "s"},
	}, bucket.Condition{})
	if err != nil {
		w.t.Error(err)
	}
}

func TestPublish(t *testing.T) {
	for _, tc := range publishCases {
		for _, before := range []string{"", "before"} {
			name := tc.name + ", pinned absent"
			if before != "" {
				name = tc.name + ", pinned present"
			}
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				if before != "" {
					w.byOther(before)
				}
				want := tc.want
				if want.content == "" {
					want.content = before
				}
				o := w.pin()
				tc.arrange(w)
				r, err := w.publish(o)
				w.check(buckettest.Put, r, err, want)
			})
		}
	}
}

func TestPublishOverRemoved(t *testing.T) {
	w := newWorld(t)
	w.byOther("before")
	o := w.pin()
	w.gone()
	r, err := w.publish(o)
	w.check(buckettest.Put, r, err, outcome{err: bucket.ErrOutputChanged, sent: true, sure: true, calls: 1})
}

// A condition cannot detect this case.
func TestPublishSameBytes(t *testing.T) {
	w := newWorld(t)
	w.byOther("same")
	stale := w.pin()
	_, err := w.pin().Publish(t.Context(), stamp("newer"), text("same"), 4, "")
	if err != nil {
		t.Fatal(err)
	}
	w.Next(buckettest.Put, buckettest.Lost)
	r, err := w.publish(stale)
	if !errors.Is(err, bucket.ErrOutputChanged) || r.Sure {
		t.Errorf("after a HEAD request: %+v, %v, want ErrOutputChanged: another attempt wrote the nonce", r, err)
	}

	w = newWorld(t)
	w.byOther("same")
	stale = w.pin()
	if _, err = w.pin().Publish(t.Context(), stamp("newer"), text("same"), 4, ""); err != nil {
		t.Fatal(err)
	}
	if r, err = w.publish(stale); err != nil || !r.Sure {
		t.Errorf("without a HEAD request: %+v, %v; the ETag does not show whose content it is", r, err)
	}
	if src, _ := w.pin().Source(); src != "src-mine" {
		t.Errorf("recorded source = %q, want the stale one, for verification to find", src)
	}
}

// Only the modification time differs.
func TestPublishOverRewrittenBytes(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := worldOn(t, membucket.New(func() time.Time { return now }, []string{"b"}), ref)
	foreign := func() {
		o := bucket.Object{Body: strings.NewReader("same"), Size: 4}
		if _, err := w.store.Put(t.Context(), ref, o, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	foreign()
	o := w.pin()
	now = now.Add(time.Second)
	foreign()
	w.Next(buckettest.Put, buckettest.Lost)
	r, err := w.publish(o)
	w.check(buckettest.Put, r, err, outcome{err: bucket.ErrOutputChanged, sent: true, sure: false, calls: 1, content: "same"})
}
