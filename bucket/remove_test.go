package bucket_test

import (
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

// An outcome without content means that no object remains.
var removeCases = []changeCase{
	{
		"204",
		func(*world) {},
		outcome{sent: true, sure: true, calls: 1},
	},
	{
		"412, nothing there",
		func(w *world) { w.gone() },
		outcome{sent: true, sure: true, calls: 1},
	},
	{
		"412, a retry below",
		func(w *world) { w.Next(buckettest.Delete, buckettest.Twice) },
		outcome{sent: true, sure: true, calls: 1},
	},
	{
		"412, an object",
		func(w *world) { w.byOther("other") },
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: true, calls: 1, content: "other"},
	},
	{
		"412, HEAD fails",
		func(w *world) { w.byOther("other"); w.Next(buckettest.Head, blind) },
		outcome{err: bucket.ErrUnclear, sent: true, sure: true, calls: 1, content: "other"},
	},
	{
		"409 twice",
		func(w *world) { w.Next(buckettest.Delete, conflict, conflict) },
		outcome{sent: true, sure: true, calls: 3},
	},
	{
		"409 without end",
		func(w *world) { w.Next(buckettest.Delete, conflict, conflict, conflict) },
		outcome{err: bucket.ErrConflict, sent: true, sure: true, calls: 3, content: "before"},
	},
	{
		"403",
		func(w *world) { w.Next(buckettest.Delete, denied) },
		outcome{err: bucket.ErrDenied, sent: true, sure: true, calls: 1, content: "before"},
	},
	{
		"unclear, nothing there",
		func(w *world) { w.Next(buckettest.Delete, buckettest.Landed) },
		outcome{sent: true, sure: false, calls: 1},
	},
	{
		"unclear, as pinned, then 204",
		func(w *world) { w.Next(buckettest.Delete, buckettest.Lost) },
		outcome{sent: true, sure: false, calls: 2},
	},
	{
		"unclear, as pinned, without end",
		func(w *world) { w.Next(buckettest.Delete, buckettest.Lost, buckettest.Lost, buckettest.Lost) },
		outcome{err: bucket.ErrUnclear, sent: true, sure: false, calls: 3, content: "before"},
	},
	{
		"unclear, something else",
		func(w *world) { w.byOther("other"); w.Next(buckettest.Delete, buckettest.Lost) },
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: false, calls: 1, content: "other"},
	},
	{
		"unclear, removed and written again",
		func(w *world) {
			w.Next(buckettest.Delete, buckettest.Landed)
			w.Next(buckettest.Head, buckettest.Between(func() { w.byOther("other") }))
		},
		outcome{err: bucket.ErrOutputChanged, sent: true, sure: false, calls: 1, content: "other"},
	},
	{
		"unclear, HEAD fails",
		func(w *world) { w.Next(buckettest.Delete, buckettest.Landed); w.Next(buckettest.Head, blind) },
		outcome{err: bucket.ErrUnclear, sent: true, sure: false, calls: 1},
	},
}

func TestRemove(t *testing.T) {
	for _, tc := range removeCases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.byOther("before")
			o := w.pin()
			tc.arrange(w)
			r, err := o.Remove(t.Context())
			w.check(buckettest.Delete, r, err, tc.want)
		})
	}
}

func TestRemoveAbsent(t *testing.T) {
	w := newWorld(t)
	o := w.pin()
	w.byOther("other")
	r, err := o.Remove(t.Context())
	w.check(buckettest.Delete, r, err, outcome{sure: true, content: "other"})
}

// An ambiguous removal is never sure, because the condition holds again after the same content is
// written again.
func TestLateRemoval(t *testing.T) {
	w := newWorld(t)
	w.byOther("before")
	o := w.pin()
	var land func() error
	w.Next(buckettest.Delete, buckettest.Late(&land))
	w.Next(buckettest.Head, buckettest.Between(w.gone))
	r, err := o.Remove(t.Context())
	w.check(buckettest.Delete, r, err, outcome{sent: true, sure: false, calls: 1})
	w.byOther("before")
	if err := land(); err != nil {
		t.Fatal(err)
	}
	if got := w.content(); got != "" {
		t.Errorf("content = %q; want the late removal to show why it is unsure", got)
	}
}

func TestLatePublish(t *testing.T) {
	w := newWorld(t)
	o := w.pin()
	var land func() error
	w.Next(buckettest.Put, buckettest.Late(&land))
	r, err := w.publish(o)
	w.check(buckettest.Put, r, err, outcome{sent: true, sure: false, calls: 2, content: "mine"})
	w.gone()
	if err := land(); err != nil {
		t.Fatal(err)
	}
	if got := w.content(); got != "mine" {
		t.Errorf("content = %q; want the late copy to show why it is unsure", got)
	}
}
