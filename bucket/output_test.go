package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
)

var ref = event.Object{Bucket: "b", Key: "out/k"}

type world struct {
	t     *testing.T
	store bucket.Store // without faults
	*buckettest.Faults
	ref event.Object
}

func newWorld(t *testing.T) *world {
	return worldOn(t, membucket.New(time.Now, []string{"b"}), ref)
}

func worldOn(t *testing.T, s bucket.Store, ref event.Object) *world {
	return &world{t: t, store: s, Faults: buckettest.NewFaults(s), ref: ref}
}

func stamp(nonce string) bucket.Stamp {
	return bucket.Stamp{Pipeline: "gray", Object: "in-a", Source: "src-" + nonce, Fence: 17, Nonce: nonce}
}

func text(s string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return seeker{strings.NewReader(s)}, nil }
}

type seeker struct{ *strings.Reader }

func (seeker) Close() error { return nil }

func (w *world) pin() *bucket.Output {
	w.t.Helper()
	o, err := bucket.Pin(w.t.Context(), w.Faults, w.ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) publish(o *bucket.Output) (bucket.Result, error) {
	return o.Publish(w.t.Context(), stamp("mine"), text("mine"), 4, "text/plain")
}

func (w *world) byOther(content string) {
	w.t.Helper()
	o, err := bucket.Pin(w.t.Context(), w.store, w.ref)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := o.Publish(w.t.Context(), stamp("other"), text(content), int64(len(content)), ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) gone() {
	w.t.Helper()
	if err := w.store.Delete(w.t.Context(), w.ref, bucket.Condition{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) content() string {
	w.t.Helper()
	_, body, err := w.store.Get(w.t.Context(), w.ref)
	if errors.Is(err, bucket.ErrNotFound) {
		return ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(body); err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

type outcome struct {
	err        error // nil: success
	sent, sure bool
	calls      int
	content    string
}

var kinds = []error{
	bucket.ErrOutputChanged, bucket.ErrUnclear, bucket.ErrConflict, bucket.ErrPrecondition,
	bucket.ErrDenied, bucket.ErrInvalid, bucket.ErrNoBucket, bucket.ErrNotFound, bucket.ErrUnavailable,
}

func (w *world) check(op buckettest.Op, r bucket.Result, err error, want outcome) {
	w.t.Helper()
	if (err == nil) != (want.err == nil) {
		w.t.Errorf("error = %v, want %v", err, want.err)
	}
	for _, kind := range kinds {
		if errors.Is(err, kind) != (kind == want.err) {
			w.t.Errorf("error = %v; is it %q? want only %v", err, kind, want.err)
		}
	}
	if err != nil && (!strings.Contains(err.Error(), "s3://") || strings.Contains(err.Error(), "\n")) {
		w.t.Errorf("error = %q, want the object named in one line", err)
	}
	if r.Sent != want.sent || r.Sure != want.sure {
		w.t.Errorf("Result = %+v, want {Sent:%t Sure:%t}", r, want.sent, want.sure)
	}
	if n := w.Calls(op); n != want.calls {
		w.t.Errorf("%s was called %d times, want %d", op, n, want.calls)
	}
	if got := w.content(); got != want.content {
		w.t.Errorf("content = %q, want %q", got, want.content)
	}
}

func TestPin(t *testing.T) {
	w := newWorld(t)
	o := w.pin()
	if src, ok := o.Source(); o.Exists() || ok || src != "" || !o.ModTime().IsZero() {
		t.Errorf("pinned nothing: Exists %t, Source %q %t, ModTime %v", o.Exists(), src, ok, o.ModTime())
	}
	w.byOther("x")
	o = w.pin()
	if src, ok := o.Source(); !o.Exists() || !ok || src != "src-other" || o.ModTime().IsZero() {
		t.Errorf("pinned a published object: Exists %t, Source %q %t, ModTime %v", o.Exists(), src, ok, o.ModTime())
	}
}

func TestPinFails(t *testing.T) {
	for _, kind := range []error{bucket.ErrNoBucket, bucket.ErrDenied, bucket.ErrUnavailable, bucket.ErrInvalid} {
		w := newWorld(t)
		w.Next(buckettest.Head, buckettest.Answer(kind))
		if o, err := bucket.Pin(t.Context(), w.Faults, ref); !errors.Is(err, kind) || o != nil {
			t.Errorf("Pin = %v, %v, want %v", o, err, kind)
		}
	}
	old := ref
	old.VersionID = "v1"
	if _, err := bucket.Pin(t.Context(), newWorld(t), old); !errors.Is(err, bucket.ErrInvalid) {
		t.Errorf("Pin of an old version = %v, want ErrInvalid", err)
	}
}

func TestSourceOfOthers(t *testing.T) {
	for name, metadata := range map[string]map[string]string{
		"foreign":     nil,
		"no size":     {"pawl-source": "s", "pawl-nonce": "n"},
		"cut off":     {"pawl-source": "s", "pawl-nonce": "n", "pawl-size": "1000"},
		"size absurd": {"pawl-source": "s", "pawl-nonce": "n", "pawl-size": "+1"},
		"no source":   {"pawl-size": "1"},
	} {
		w := newWorld(t)
		_, err := w.store.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader("x"), Size: 1, Metadata: metadata}, bucket.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		o := w.pin()
		if src, ok := o.Source(); ok || !o.Exists() {
			t.Errorf("%s: Source = %q, %t, want none", name, src, ok)
		}
	}
}

func TestStamp(t *testing.T) {
	w := newWorld(t)
	if _, err := w.publish(w.pin()); err != nil {
		t.Fatal(err)
	}
	info, err := w.store.Head(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"pawl-pipeline": "gray", "pawl-object": "in-a", "pawl-source": "src-mine", "pawl-fence": "17", "pawl-nonce": "mine", "pawl-size": "4",
	} {
		if info.Metadata[key] != value {
			t.Errorf("%s = %q, want %q", key, info.Metadata[key], value)
		}
	}
	if info.ContentType != "text/plain" {
		t.Errorf("ContentType = %q", info.ContentType)
	}
}

func TestBadStamps(t *testing.T) {
	for name, s := range map[string]bucket.Stamp{
		"no nonce":     {Pipeline: "p", Source: "s"},
		"newline":      {Nonce: "n", Source: "a\nb"},
		"not ASCII":    {Nonce: "n", Pipeline: "é"},
		"object":       {Nonce: "n", Object: "é"},
		"outer spaces": {Nonce: "n", Source: "s "},
	} {
		w := newWorld(t)
		r, err := w.pin().Publish(t.Context(), s, text("x"), 1, "")
		if !errors.Is(err, bucket.ErrInvalid) || r.Sent || !r.Sure || w.Calls(buckettest.Put) != 0 {
			t.Errorf("%s: %+v, %v, want ErrInvalid and nothing sent", name, r, err)
		}
	}
}

// A second change could mistake the object of the first for its own.
func TestOnce(t *testing.T) {
	w := newWorld(t)
	o := w.pin()
	if _, err := w.publish(o); err != nil {
		t.Fatal(err)
	}
	r, err := o.Publish(t.Context(), stamp("mine"), text("more"), 4, "")
	if err == nil || r.Sent || w.content() != "mine" {
		t.Errorf("second Publish = %+v, %v over %q, want it refused", r, err, w.content())
	}
}

func TestBodyOpensAfresh(t *testing.T) {
	w := newWorld(t)
	w.Next(buckettest.Put, buckettest.Answer(bucket.ErrConflict), buckettest.Lost)
	var opened, closed int
	body := func() (io.ReadCloser, error) {
		opened++
		return &counted{Reader: strings.NewReader("mine"), closed: &closed}, nil
	}
	if _, err := w.pin().Publish(t.Context(), stamp("mine"), body, 4, ""); err != nil {
		t.Fatal(err)
	}
	if opened != 3 || closed != 3 || w.content() != "mine" {
		t.Errorf("opened %d, closed %d, content %q, want 3, 3, mine", opened, closed, w.content())
	}
}

type counted struct {
	io.Reader
	closed *int
}

func (c *counted) Close() error { *c.closed++; return nil }

func TestBodyDoesNotOpen(t *testing.T) {
	w := newWorld(t)
	broken := errors.New("no such spool file")
	r, err := w.pin().Publish(t.Context(), stamp("mine"), func() (io.ReadCloser, error) { return nil, broken }, 4, "")
	if !errors.Is(err, broken) || r.Sent || !r.Sure {
		t.Errorf("Publish = %+v, %v, want nothing sent", r, err)
	}
}

func TestCancelled(t *testing.T) {
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	w := newWorld(t)
	w.byOther("x")
	r, err := w.pin().Publish(ctx, stamp("mine"), text("mine"), 4, "")
	if !errors.Is(err, lost) || r.Sent || !r.Sure {
		t.Errorf("Publish = %+v, %v, want nothing sent", r, err)
	}
	r, err = w.pin().Remove(ctx)
	if !errors.Is(err, lost) || r.Sent || !r.Sure || w.content() != "x" {
		t.Errorf("Remove = %+v, %v, want nothing sent", r, err)
	}
}

func TestCancelledOnTheWay(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	reached := make(chan struct{})
	w.Next(buckettest.Put, buckettest.Hold(reached, nil))
	o := w.pin()
	go func() {
		<-reached
		cancel(errors.New("lease lost"))
	}()
	r, err := o.Publish(ctx, stamp("mine"), text("mine"), 4, "")
	w.check(buckettest.Put, r, err, outcome{err: bucket.ErrUnclear, sent: true, sure: false, calls: 1})
}
