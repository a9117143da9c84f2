package worker_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/worker"
)

// byAnother lets another worker write the output just before a write.
func (w *world) byAnother(do buckettest.Fault) buckettest.Fault {
	return func(ctx context.Context, send func(context.Context) error) error {
		w.write(out("a"), "another's", nil)
		return do(ctx, send)
	}
}

// The first copy of a publish lands just before the second publish of the attempt, on an output
// that is absent again. The attempt must not mistake it for the second, because each publish has
// its own nonce.
func TestLateWriteIsNotMistakenForTheNextPublish(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		var land func() error
		n.store.Next(buckettest.Put, w.byAnother(buckettest.Late(&land)), func(ctx context.Context, do func(context.Context) error) error {
			if err := land(); err != nil {
				t.Errorf("the first copy did not land: %v", err)
			}
			return do(ctx)
		})
		// A HEAD for the first copy finds another worker's output, which is then removed.
		n.store.Next(buckettest.Head, buckettest.Pass, buckettest.Pass, buckettest.Pass, buckettest.Between(func() {
			w.erase(out("a"))
			w.write(in("a"), "two", nil)
		}))
		n.deliver(w.put("a", "one")).wantAck(w)
		w.wantOutput("a", "TWO")
		if n.store.Calls(buckettest.Put) != 3 {
			t.Errorf("%d publishes, want 3: the late one, one that the store rejects, and one that replaces the late one", n.store.Calls(buckettest.Put))
		}
	})
}

// The attempt succeeds, but an earlier copy may still land.
func TestUnsurePublishBeforeARestartIsVerified(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		var land func() error
		n.store.Next(buckettest.Put, w.byAnother(buckettest.Late(&land)))
		n.deliver(w.put("a", "one"))
		w.wantOutput("a", "ONE")
		w.wantSettled("a")
		if want := w.began.Add(horizon); !w.row("a").VerifyAt.Equal(want) {
			t.Errorf("verify at %s, want %s: the first copy may still land", w.row("a").VerifyAt, want)
		}
		n.deliver(w.remove("a"))
		w.wantOutput("a", "")
		if err := land(); err != nil {
			t.Fatal(err)
		}
		w.wantOutput("a", "ONE") // for now
		w.pass(horizon + 2*time.Second)
		w.wantOutput("a", "")
		w.wantSettled("a")
	})
}

func TestFailureAfterARestartLeavesDoubt(t *testing.T) {
	broken := errors.New("broken pipe")
	for name, second := range map[string]func(task *worker.Task) error{
		"in the handler": func(*worker.Task) error { return broken },
		"in the publish": func(task *worker.Task) error {
			return task.Publish("", 1, func() (io.ReadCloser, error) { return nil, broken })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				calls := 0
				n := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					if calls++; calls == 2 {
						return second(task)
					}
					return upper(ctx, task)
				}))
				n.store.Next(buckettest.Put, w.byAnother(buckettest.Pass))
				n.deliver(w.put("a", "one"))
				if r := w.row("a"); r.Attempts != 1 || !r.Doubt || !strings.Contains(r.LastError, "broken pipe") {
					t.Errorf("after %d calls and %d attempts: doubt %v, %q", calls, r.Attempts, r.Doubt, r.LastError)
				}
				w.pass(time.Minute)
				w.wantOutput("a", "ONE")
				w.wantSettled("a")
			})
		})
	}
}

func TestAttemptWithoutLeaseDoesNotRestart(t *testing.T) {
	inWorld(t, func(w *world) {
		calls := 0
		n := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
			calls++
			return upper(ctx, task)
		}))
		n.store.Next(buckettest.Put, w.byAnother(func(ctx context.Context, do func(context.Context) error) error {
			<-ctx.Done()
			return do(context.WithoutCancel(ctx))
		}))
		n.store.Next(buckettest.Head, buckettest.Pass, buckettest.Pass, func(ctx context.Context, do func(context.Context) error) error {
			return do(context.WithoutCancel(ctx))
		})
		n.deliver(w.put("a", "one"))
		n.ledger.disconnect()
		w.pass(ttl + tick)
		heads := n.store.Calls(buckettest.Head)
		n.ledger.mend()
		synctest.Wait()
		if r := w.row("a"); calls != 1 || heads != 3 || r.LastError != worker.ErrLeaseLost.Error() || !r.Doubt {
			t.Errorf("%d calls of the handler, %d HEAD requests: %q, doubt %v", calls, heads, r.LastError, r.Doubt)
		}
	})
}

// The handler may be the reason why the store does not answer.
func TestStoreOutageInsideTheHandlerCounts(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper), attempts(3))
		for range 3 {
			n.store.Next(buckettest.Get, buckettest.Answer(bucket.ErrUnavailable))
		}
		n.deliver(w.put("a", "one"))
		if r := w.row("a"); r.Attempts != 1 {
			t.Errorf("%d attempts, want 1", r.Attempts)
		}
		w.pass(time.Minute)
		if r := w.row("a"); !r.Dead || r.Attempts != 3 {
			t.Errorf("dead %v after %d attempts", r.Dead, r.Attempts)
		}
	})
}

// The object is equal to Have again when the attempt starts over.
func TestOutputFromBeforeARestartIsReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		var kinds []event.Kind
		n := w.start(matchAll(func(ctx context.Context, task *worker.Task) error {
			kinds = append(kinds, task.Kind)
			if len(kinds) == 2 {
				w.erase(in("a"))
				_, err := read(ctx, task)
				return err
			}
			return nil
		}))
		n.deliver(w.remove("a")).wantAck(w)
		n.deliver(w.put("a", "one")).wantAck(w)
		n.deliver(w.event(in("a"), event.Removed)).wantAck(w)
		w.wantSettled("a")
		if want := []event.Kind{event.Removed, event.Created, event.Removed}; !slices.Equal(kinds, want) {
			t.Errorf("notices of %v, want %v", kinds, want)
		}
	})
}
