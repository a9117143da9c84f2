package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

func eventual(p *worker.Pipeline) *worker.Pipeline {
	p.EventuallyConsistent = true
	return p
}

var hidden = buckettest.Answer(bucket.ErrNotFound)

func TestNotFoundIsRecheckedOnEventuallyConsistentStores(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(eventual(toOut(upper)))
		n.deliver(w.put("a", "one"))
		w.pass(time.Hour)
		n.store.Next(buckettest.Head, buckettest.Pass, hidden, buckettest.Pass, hidden)
		n.deliver(w.put("a", "two"))
		w.wantOutput("a", "ONE")
		r := w.row("a")
		if wait := time.Until(r.RetryAt); r.Settled() || wait < 15*time.Second || !strings.Contains(r.LastError, "changed too recently to count as removed") {
			t.Errorf("not found: state %s, retry in %s: %q", r.State(time.Now()), wait, r.LastError)
		}
		w.pass(2 * time.Minute)
		w.wantOutput("a", "TWO")
		w.wantSettled("a")
	})
}

// The answer is late, and the object is no longer too new when it arrives.
func TestNotFoundCountsFromTheRequest(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(eventual(toOut(upper)))
		n.deliver(w.put("a", "one"))
		w.pass(time.Hour)
		late := func(ctx context.Context, do func(context.Context) error) error {
			<-time.After(2 * time.Minute)
			return hidden(ctx, do)
		}
		n.store.Next(buckettest.Head, buckettest.Pass, late)
		n.deliver(w.put("a", "two"))
		w.pass(2 * time.Minute)
		w.wantOutput("a", "ONE")
		if r := w.row("a"); r.Settled() || !strings.Contains(r.LastError, "changed too recently to count as removed") {
			t.Errorf("not found: %s: %q", r.State(time.Now()), r.LastError)
		}
		w.pass(time.Minute)
		w.wantOutput("a", "TWO")
		w.wantSettled("a")
	})
}

func TestNotFoundIsTrustedAfterAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(eventual(toOut(upper)))
		n.deliver(w.put("a", "one"))
		n.deliver(w.remove("a"))
		w.wantOutput("a", "ONE")
		w.pass(50 * time.Second)
		w.wantOutput("a", "ONE")
		w.pass(time.Minute)
		w.wantOutput("a", "")
		w.wantSettled("a")
	})
}

func TestNotFoundDelaySources(t *testing.T) {
	for _, c := range []struct {
		name  string
		young func(w *world) event.Event
		want  bool
	}{
		{"all is old", func(w *world) event.Event { return w.event(in("a"), event.Removed) }, true},
		{"the event", func(w *world) event.Event { return w.event(in("a"), event.Created) }, false},
		{"Have", func(w *world) event.Event {
			w.change("a", func(r *ledger.Row) { r.Have.Identity.ModTime = time.Now() })
			return w.event(in("a"), event.Removed)
		}, false},
		{"the output", func(w *world) event.Event {
			w.write(out("a"), "ONE", nil)
			return w.event(in("a"), event.Removed)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(eventual(toOut(upper)))
				n.deliver(w.put("a", "one"))
				w.pass(time.Hour)
				w.erase(in("a"))
				n.deliver(c.young(w))
				if r := w.row("a"); (r.Have.Kind == event.Removed) != c.want {
					t.Errorf("have %s", r.Have.Kind)
				}
			})
		})
	}
}

func TestNotFoundIsTrustedOnConsistentStores(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		n.deliver(w.put("a", "one"))
		n.deliver(w.remove("a"))
		w.wantOutput("a", "")
		w.wantSettled("a")
	})
}

func TestMissingBucketIsNoRemoval(t *testing.T) {
	for name, heads := range map[string][]buckettest.Fault{
		"input":  {buckettest.Pass, buckettest.Answer(bucket.ErrNoBucket)},
		"output": {buckettest.Answer(bucket.ErrNoBucket)},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(toOut(upper))
				n.deliver(w.put("a", "one"))
				n.store.Next(buckettest.Head, heads...)
				n.deliver(w.event(in("a"), event.Removed))
				w.wantOutput("a", "ONE")
				const hint = "(create the bucket, or correct the configuration)"
				if r := w.row("a"); r.Settled() || r.Dead || !strings.Contains(r.LastError, hint) {
					t.Errorf("%s: %q, want %q in it", r.State(time.Now()), r.LastError, hint)
				}
			})
		})
	}
}

func TestEachVersionIsHandledOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		var seen []string
		p := matchAll(func(ctx context.Context, task *worker.Task) error {
			content := ""
			if task.Kind == event.Created {
				var err error
				if content, err = read(ctx, task); err != nil {
					return err
				}
			}
			seen = append(seen, task.Kind.String()+" "+task.Object.VersionID+" "+content)
			return nil
		})
		p.EachVersion = true
		n := w.start(p)
		version := func(kind event.Kind, id string) event.Event {
			return w.event(event.Object{Bucket: "kept", Key: "a", VersionID: id}, kind)
		}
		kept := event.Object{Bucket: "kept", Key: "a"}
		w.write(kept, "one", nil) // v1
		w.write(kept, "two", nil) // v2
		w.erase(kept)             // v3, a delete marker
		first, second, marker := version(event.Created, "v1"), version(event.Created, "v2"), version(event.Removed, "v3")
		n.deliver(second)
		n.deliver(first) // older, but of another version
		n.deliver(marker)
		n.deliver(second, first)
		want := []string{"created v2 two", "created v1 one", "removed v3 "}
		if d := cmp.Diff(want, seen); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if s := n.Stats(); s.Raised != 3 || s.Duplicate != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestTheLatestVersionWins(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		kept := event.Object{Bucket: "kept", Key: "a"}
		w.write(kept, "one", nil)
		first := w.event(event.Object{Bucket: "kept", Key: "a", VersionID: "v1"}, event.Created)
		w.write(kept, "two", nil)
		n.deliver(first)
		w.wantOutput("a", "TWO")
		n.deliver(w.event(event.Object{Bucket: "kept", Key: "a", VersionID: "v2"}, event.Created))
		if s := n.Stats(); s.Completed != 1 || s.NothingToDo != 1 {
			t.Errorf("%+v", s)
		}
	})
}
