package worker_test

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/worker"
)

func (s recorded) Copy(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	etag, err := s.Store.(halting).Store.(bucket.Copier).Copy(ctx, m, from, ref, o, c)
	s.recorder.note("copy %s/%s to %s/%s %s: %s", from.Ref.Bucket, from.Ref.Key, ref.Bucket, ref.Key, recoverPanic(c), said(err))
	return etag, err
}

func copyWhole(ctx context.Context, t *worker.Task) error {
	return t.PublishCopy(ctx, bucket.CopyWhole)
}

func TestStoreCopiesTheObject(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(copyWhole))
		n.deliver(w.put("a", "one")).wantAck(w)
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: object not found
			head in/a: ok
			copy in/a to out/up/a if absent: ok
			swap completed: ok`)
		w.wantOutput("a", "one")
		w.wantSettled("a")
		n.deliver(w.put("a", "two")).wantAck(w)
		w.wantOutput("a", "two")
		n.deliver(w.remove("a")).wantAck(w)
		w.wantOutput("a", "")
	})
}

func TestCopyOfAChangedObjectStartsOver(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(copyWhole))
		n.store.Next(buckettest.Put, buckettest.Between(func() { w.write(in("a"), "two", nil) }))
		n.deliver(w.put("a", "one")).wantAck(w)
		w.wantOutput("a", "two")
		w.wantSettled("a")
		if r := w.row("a"); r.Attempts != 0 || n.store.Calls(buckettest.Put) != 2 {
			t.Errorf("%d copies, %d attempts are left in the row, want 2 and 0", n.store.Calls(buckettest.Put), r.Attempts)
		}
	})
}

func TestUnansweredCopyIsVerified(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(copyWhole))
		var land func() error
		n.store.Next(buckettest.Put, w.byAnother(buckettest.Late(&land)))
		n.deliver(w.put("a", "one"))
		w.wantOutput("a", "one")
		if want := w.began.Add(horizon); !w.row("a").VerifyAt.Equal(want) {
			t.Errorf("verify at %s, want %s: the first copy may still land", w.row("a").VerifyAt, want)
		}
	})
}

func TestRefusedCopyStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(copyWhole))
		n.store.Next(buckettest.Put, buckettest.Answer(bucket.ErrDenied))
		n.deliver(w.put("a", "one")).wantAck(w)
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: object not found
			head in/a: ok
			copy in/a to out/up/a if absent: access denied
			get in/a: ok
			put out/up/a if absent: ok
			swap completed: ok`)
		w.wantOutput("a", "one")
	})
}

// The ETag comes from the event, so objects stream.
func TestEventOrderDoesNotLetTheStoreCopy(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(byEvent(toOut(copyWhole)))
		e := w.put("a", "one")
		e.Size = 3
		n.deliver(e).wantAck(w)
		w.wantOutput("a", "one")
		if w.recorder.count("copy") != 0 {
			t.Error("the store copied the object")
		}
	})
}

func TestStoreThatCannotCopyStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(copyWhole), func(c *worker.Config) { c.Objects = struct{ bucket.Store }{w.objects} })
		n.deliver(w.put("a", "one")).wantAck(w)
		w.wantOutput("a", "one")
	})
}

func TestCopyWithoutAnOutputIsDead(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(copyWhole))
		n.deliver(w.put("a", "one"))
		if r := w.row("a"); !r.Dead {
			t.Errorf("the row is not dead: %s", r.LastError)
		}
	})
}
