package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/worker"
)

// The order of the steps is essential; see "Life of an event" in ARCHITECTURE.md.
func TestAttemptStepsAreInOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(w.recorder.handler(upper)))
		n.deliver(w.put("a", "one")).wantAck(w)
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: object not found
			head in/a: ok
			handle created a
			get in/a: ok
			put out/up/a if absent: ok
			swap completed: ok`)
		w.wantOutput("a", "ONE")
		w.recorder.reset()

		n.deliver(w.put("a", "two")).wantAck(w)
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: ok
			head in/a: ok
			handle created a
			get in/a: ok
			put out/up/a if unchanged: ok
			swap completed: ok`)
		w.wantOutput("a", "TWO")
		w.recorder.reset()

		n.deliver(w.remove("a")).wantAck(w)
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: ok
			head in/a: object not found
			delete out/up/a if unchanged: ok
			swap completed: ok`)
		w.wantOutput("a", "")
		w.wantSettled("a")
	})
}

func TestAttemptWithoutOutputPinsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(w.recorder.handler(func(context.Context, *worker.Task) error { return nil })))
		n.deliver(w.put("a", "one"))
		n.deliver(w.remove("a"))
		w.recorder.want(t, `
			swap claimed: ok
			head in/a: ok
			handle created a
			swap completed: ok
			swap claimed: ok
			head in/a: object not found
			handle removed a
			swap completed: ok`)
	})
}

func TestChangedOutputIsPinnedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(w.recorder.handler(upper)))
		n.store.Next(buckettest.Put, buckettest.Between(func() { w.write(out("a"), "another's", nil) }))
		n.deliver(w.put("a", "one"))
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: object not found
			head in/a: ok
			handle created a
			get in/a: ok
			put out/up/a if absent: precondition failed
			head out/up/a: ok
			head out/up/a: ok
			head in/a: ok
			handle created a
			get in/a: ok
			put out/up/a if unchanged: ok
			swap completed: ok`)
		w.wantOutput("a", "ONE")
	})
}

func TestOutputThatKeepsChangingFails(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(w.recorder.handler(upper)))
		for i := range 5 {
			n.store.Next(buckettest.Put, buckettest.Between(func() { w.write(out("a"), fmt.Sprint("another's ", i), nil) }))
		}
		n.deliver(w.put("a", "one"))
		r := w.row("a")
		if r.Settled() || r.Attempts != 1 || !r.RetryAt.After(time.Now()) || !strings.Contains(r.LastError, "the output has changed since") {
			t.Errorf("after five conflicts: %s, attempts %d, retry at %s: %q", r.State(time.Now()), r.Attempts, r.RetryAt, r.LastError)
		}
		if got := w.recorder.count("put"); got != 5 {
			t.Errorf("%d publishes, want 5", got)
		}
		if w.recorder.count("swap completed") != 0 {
			t.Error("a conflict completed the row")
		}
		w.pass(5 * time.Second)
		w.wantOutput("a", "ONE")
		w.wantSettled("a")
	})
}

func TestInputChangedAfterHeadIsReadAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(w.recorder.handler(upper)))
		n.store.Next(buckettest.Get, buckettest.Between(func() { w.write(in("a"), "two", nil) }))
		n.deliver(w.put("a", "one"))
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: object not found
			head in/a: ok
			handle created a
			get in/a: ok
			head out/up/a: object not found
			head in/a: ok
			handle created a
			get in/a: ok
			put out/up/a if absent: ok
			swap completed: ok`)
		w.wantOutput("a", "TWO")
	})
}

func TestMetadataChangeIsAChange(t *testing.T) {
	inWorld(t, func(w *world) {
		var seen []string
		n := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
			seen = append(seen, task.Info.Metadata["lang"])
			return upper(ctx, task)
		}))
		n.store.Next(buckettest.Get, buckettest.Between(func() { w.write(in("a"), "one", map[string]string{"lang": "de"}) }))
		n.deliver(w.put("a", "one"))
		if fmt.Sprint(seen) != "[ de]" {
			t.Errorf("the handler saw %q", seen)
		}
	})
}

func TestIdentify(t *testing.T) {
	base := bucket.Info{ETag: "e", ContentType: "text/plain", Metadata: map[string]string{"a": "1"}, Size: 1}
	for name, change := range map[string]func(i *bucket.Info){
		"content type":   func(i *bucket.Info) { i.ContentType = "text/html" },
		"metadata":       func(i *bucket.Info) { i.Metadata = map[string]string{"a": "2"} },
		"metadata, name": func(i *bucket.Info) { i.Metadata = map[string]string{"b": "1"} },
		"metadata, more": func(i *bucket.Info) { i.Metadata = map[string]string{"a": "1", "b": ""} },
	} {
		other := base
		change(&other)
		if worker.Identify(&base).Same(worker.Identify(&other)) {
			t.Errorf("another %s makes no difference", name)
		}
	}
}

func TestContentTypeChangeIsAChange(t *testing.T) {
	inWorld(t, func(w *world) {
		var seen []string
		n := w.start(matchAll(func(_ context.Context, task *worker.Task) error {
			seen = append(seen, task.Info.ContentType)
			return nil
		}))
		for _, contentType := range []string{"text/plain", "text/html"} {
			o := bucket.Object{Body: strings.NewReader("one"), Size: 3, ContentType: contentType}
			if _, err := w.objects.Put(t.Context(), in("a"), o, bucket.Condition{}); err != nil {
				t.Fatal(err)
			}
			n.deliver(w.event(in("a"), event.Created))
		}
		if fmt.Sprint(seen) != "[text/plain text/html]" {
			t.Errorf("the handler saw %q", seen)
		}
	})
}

func TestInputRemovedAfterHeadIsARemoval(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		n.deliver(w.put("a", "one"))
		n.store.Next(buckettest.Get, buckettest.Between(func() { w.erase(in("a")) }))
		n.deliver(w.put("a", "two"))
		w.wantOutput("a", "")
		w.wantSettled("a")
		if r := w.row("a"); r.Have.Kind != event.Removed {
			t.Errorf("have %s, want a removal", r.Have.Kind)
		}
	})
}

// A store whose GET never agrees with its HEAD must not occupy a worker forever.
func TestInputThatKeepsChangingBacksOffUntilDead(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(w.recorder.handler(upper)), attempts(3))
		for i := range 5 * 3 {
			n.store.Next(buckettest.Get, buckettest.Between(func() { w.write(in("a"), fmt.Sprint("version ", i), nil) }))
		}
		n.deliver(w.put("a", "one"))
		if r := w.row("a"); r.Attempts != 1 || !r.RetryAt.After(time.Now()) {
			t.Errorf("after five changes: attempts %d, retry at %s", r.Attempts, r.RetryAt)
		}
		w.pass(time.Minute)
		if r := w.row("a"); !r.Dead || w.recorder.count("handle") != 5*3 {
			t.Errorf("dead %v after %d calls of the handler, want 15", r.Dead, w.recorder.count("handle"))
		}
	})
}

// Therefore the output is pinned before the input is read.
func TestOlderResultDoesNotReplaceNewer(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(func(_ context.Context, task *worker.Task) error {
			return write(task, "made of "+task.Info.Metadata["version"])
		}))
		w.write(in("a"), "x", map[string]string{"version": "1"})
		asleep := buckettest.Between(func() {
			w.write(in("a"), "x", map[string]string{"version": "2"})
			w.write(out("a"), "made of 2", nil)
		})
		n.store.Next(buckettest.Head, buckettest.Pass, asleep)
		n.deliver(w.event(in("a"), event.Created))
		w.wantOutput("a", "made of 2")
		w.wantSettled("a")
	})
}

func TestEmptyHandlerRemovesTheOldOutput(t *testing.T) {
	inWorld(t, func(w *world) {
		silent := false
		n := w.start(toOut(w.recorder.handler(func(ctx context.Context, task *worker.Task) error {
			if silent {
				return nil
			}
			return upper(ctx, task)
		})))
		n.deliver(w.put("a", "one"))
		w.recorder.reset()
		silent = true
		n.deliver(w.put("a", "two"))
		w.recorder.want(t, `
			swap claimed: ok
			head out/up/a: ok
			head in/a: ok
			handle created a
			delete out/up/a if unchanged: ok
			swap completed: ok`)
		w.wantSettled("a")

		n.deliver(w.put("never", "had one"))
		w.wantOutput("never", "")
		w.wantSettled("never")
	})
}

func attempts(most int) func(*worker.Config) {
	return func(c *worker.Config) { c.Policy.Attempts = most }
}
