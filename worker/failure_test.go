package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

func TestFailures(t *testing.T) {
	const hint = "(grant s3:ListBucket and s3:GetObject on inputs and outputs, s3:PutObject and s3:DeleteObject on outputs: without s3:ListBucket, S3 denies access to missing objects"
	broken := errors.New("broken pipe")
	failing := func(err error) worker.HandlerFunc {
		return func(context.Context, *worker.Task) error { return err }
	}
	for _, c := range []struct {
		name    string
		handler worker.HandlerFunc
		faults  map[buckettest.Op][]buckettest.Fault
		key     string
		dead    bool
		wait    time.Duration // at least
		says    string
	}{
		{name: "an error", handler: failing(broken), says: "broken pipe"},
		{name: "permanent", handler: failing(fmt.Errorf("load: %w", worker.Permanent(broken))), dead: true, says: "load: broken pipe"},
		{name: "retry after", handler: failing(fmt.Errorf("load: %w", worker.RetryAfter(broken, time.Minute))), wait: time.Minute, says: "load: broken pipe"},
		{name: "panic", handler: func(context.Context, *worker.Task) error { panic("out of \x1b[31mcheese") },
			says: `the handler of upper panicked: "out of \x1b[31mcheese"`},
		{name: "panic with an error", handler: func(context.Context, *worker.Task) error { panic(broken) },
			says: `the handler of upper panicked: "broken pipe"`},
		{name: "denied HEAD", handler: upper, says: hint,
			faults: map[buckettest.Op][]buckettest.Fault{buckettest.Head: {buckettest.Pass, buckettest.Answer(bucket.ErrDenied)}}},
		{name: "denied GET", handler: upper, says: hint,
			faults: map[buckettest.Op][]buckettest.Fault{buckettest.Get: {buckettest.Answer(bucket.ErrDenied)}}},
		{name: "denied PUT", handler: upper, says: hint,
			faults: map[buckettest.Op][]buckettest.Fault{buckettest.Put: {buckettest.Answer(bucket.ErrDenied)}}},
		{name: "invalid", handler: upper, dead: true, says: "the store rejected the request",
			faults: map[buckettest.Op][]buckettest.Fault{buckettest.Put: {buckettest.Answer(bucket.ErrInvalid)}}},
		{name: "panic in what is published", handler: func(_ context.Context, task *worker.Task) error {
			return task.Publish("", 1, func() (io.ReadCloser, error) { panic("no body") })
		}, says: `the content published by upper panicked: "no body"`},
		{name: "an output too long", handler: upper, key: strings.Repeat("k", 1023), dead: true, says: "read the metadata of the output"},
		{name: "an output that leaves its prefix", handler: upper, key: "../b", dead: true, says: "some servers store under another key: rename the object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(toOut(c.handler))
				for op, faults := range c.faults {
					n.store.Next(op, faults...)
				}
				key := "a" + c.key
				if c.key != "" {
					key = c.key
				}
				n.deliver(w.put(key, "one")).wantAck(w)
				r := w.row(key)
				if r.Settled() || r.Held() || r.Dead != c.dead || r.Attempts != 1 || !strings.Contains(r.LastError, c.says) {
					t.Errorf("dead %v after %d attempts: %q, want dead %v and %q", r.Dead, r.Attempts, r.LastError, c.dead, c.says)
				}
				if wait := time.Until(r.RetryAt); !c.dead && (wait < c.wait || wait > c.wait+time.Second) {
					t.Errorf("retry in %s, want %s plus at most a second", wait, c.wait)
				}
			})
		})
	}
}

func TestPanicFailsOnlyItsObject(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
			if task.Object.Key == "poison" {
				panic("the handler of this test")
			}
			return upper(ctx, task)
		}), attempts(3))
		n.deliver(w.put("poison", "x"), w.put("a", "one"), w.put("b", "two")).wantAck(w)
		w.pass(time.Minute)
		w.wantOutput("a", "ONE")
		w.wantOutput("b", "TWO")
		if r := w.row("poison"); !r.Dead || !strings.Contains(r.LastError, "the handler of this test") {
			t.Errorf("dead %v: %q", r.Dead, r.LastError)
		}
	})
}

func TestOutageLeavesNoDeadRows(t *testing.T) {
	for _, down := range []error{bucket.ErrUnavailable, bucket.ErrNoBucket} {
		inWorld(t, func(w *world) {
			n := w.start(toOut(upper), attempts(2))
			for range 50 {
				n.store.Next(buckettest.Head, buckettest.Answer(down))
			}
			n.deliver(w.put("a", "one")).wantAck(w)
			w.pass(5 * time.Minute)
			if r := w.row("a"); r.Dead || r.Attempts != 0 || r.LastError == "" {
				t.Errorf("dead %v after %d attempts: %q", r.Dead, r.Attempts, r.LastError)
			}
			w.pass(time.Hour)
			w.wantOutput("a", "ONE")
		})
	}
}

func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(func(context.Context, *worker.Task) error {
			runtime.Goexit()
			return nil
		}))
		n.deliver(w.put("a", "one")).wantAck(w)
		if r := w.row("a"); r.Held() || r.Attempts != 1 || !strings.Contains(r.LastError, "ended its goroutine") {
			t.Errorf("held %v after %d attempts: %q", r.Held(), r.Attempts, r.LastError)
		}
		if r := w.row("a"); !r.Doubt || r.VerifyAt.IsZero() {
			t.Errorf("doubt %v, verify at %s: the attempt may have sent something", r.Doubt, r.VerifyAt)
		}
	})
}

func TestPermanentAndRetryAfterKeepTheError(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, err := range []error{worker.Permanent(broken), worker.RetryAfter(broken, time.Minute)} {
		if !errors.Is(err, broken) || err.Error() != broken.Error() {
			t.Errorf("%v no longer matches the error", err)
		}
	}
	if !worker.IsPermanent(fmt.Errorf("load: %w", worker.Permanent(broken))) || worker.IsPermanent(broken) || worker.IsPermanent(nil) {
		t.Error("IsPermanent is wrong")
	}
}

// A handler without a fenced output may have had its effect when it fails.
func TestFailureAfterASendLeavesDoubt(t *testing.T) {
	failing := func(context.Context, *worker.Task) error { return errors.New("broken pipe") }
	for _, c := range []struct {
		name     string
		pipeline *worker.Pipeline
		op       buckettest.Op
		fault    buckettest.Fault
		want     bool
	}{
		{"no output, before the handler", matchAll(failing), buckettest.Head, buckettest.Answer(bucket.ErrDenied), false},
		{"no output, in the handler", matchAll(failing), buckettest.Head, buckettest.Pass, true},
		{"output, in the handler", toOut(failing), buckettest.Head, buckettest.Pass, false},
		{"output, in the publish", toOut(upper), buckettest.Put, buckettest.Answer(bucket.ErrDenied), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(c.pipeline)
				n.store.Next(c.op, c.fault)
				n.deliver(w.put("a", "one"))
				if r := w.row("a"); r.Doubt != c.want || r.Attempts != 1 {
					t.Errorf("doubt %v after %d attempts, want %v", r.Doubt, r.Attempts, c.want)
				}
			})
		})
	}
}

func TestBackoffUntilDead(t *testing.T) {
	inWorld(t, func(w *world) {
		const sweep = 100 * time.Millisecond
		var at []time.Duration
		n := w.start(matchAll(func(context.Context, *worker.Task) error {
			at = append(at, w.since())
			return errors.New("broken pipe")
		}), attempts(6), func(c *worker.Config) {
			c.Policy.Base, c.Policy.Max, c.SweepInterval = 10*time.Second, time.Minute, sweep
		})
		n.deliver(w.put("a", "one"))
		w.pass(time.Hour)
		if len(at) != 6 {
			t.Fatalf("%d attempts, want 6", len(at))
		}
		for i, ceiling := range []time.Duration{10, 20, 40, 60, 60} {
			if gap := at[i+1] - at[i]; gap < 0 || gap > ceiling*time.Second+2*sweep {
				t.Errorf("attempt %d came %s after the one before, want at most %ds", i+2, gap, ceiling)
			}
		}
		if r := w.row("a"); !r.Dead || r.Attempts != 6 || n.Stats().Died != 1 {
			t.Errorf("dead %v after %d attempts: %+v", r.Dead, r.Attempts, n.Stats())
		}
		if got := len(w.log.having("WARN attempt failed; it will be retried", "s3://in/a")); got != 5 {
			t.Errorf("%d warnings, want 5", got)
		}
		want := []string{"ERROR dead: no more attempts until the object changes or an operator redrives it pipeline=upper object=s3://in/a detail=broken pipe"}
		if d := cmp.Diff(want, w.log.having("ERROR")); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}

		n.deliver(w.put("a", "two")) // a newer version
		if r := w.row("a"); r.Dead || r.Attempts != 1 {
			t.Errorf("after a change: dead %v, attempts %d", r.Dead, r.Attempts)
		}
	})
}

func TestRetryAfterIsAMinimum(t *testing.T) {
	inWorld(t, func(w *world) {
		var at []time.Duration
		n := w.start(matchAll(func(context.Context, *worker.Task) error {
			at = append(at, w.since())
			if len(at) == 1 {
				return worker.RetryAfter(errors.New("busy"), 10*time.Minute)
			}
			return nil
		}))
		n.deliver(w.put("a", "one"))
		w.pass(time.Hour)
		if len(at) != 2 || at[1] < 10*time.Minute || at[1] > 10*time.Minute+2*time.Second {
			t.Errorf("attempts at %s", at)
		}
	})
}

// The attempt is counted when it is claimed.
func TestObjectThatKillsWorkersIsDeadLettered(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(w.recorder.handler(upper)))
		n.deliver(w.put("a", "one"))
		w.recorder.reset()
		w.change("a", func(r *ledger.Row) {
			r.Want.Generation++
			r.Attempts = ledger.DefaultPolicy().Attempts
			r.Lease = ledger.Lease{Owner: "killed", Fence: r.Lease.Fence + 1, Until: time.Now().Add(time.Second)}
		})
		w.pass(5 * time.Second)
		if r := w.row("a"); !r.Dead || r.Held() || r.VerifyAt.IsZero() || w.recorder.count("handle") != 0 {
			t.Errorf("dead %v, held %v, verify at %s", r.Dead, r.Held(), r.VerifyAt)
		}
		if len(w.log.having("ERROR dead", "s3://in/a", "the worker died during every attempt")) != 1 {
			t.Errorf("logObserver %q", w.log.lines)
		}
	})
}

func TestIdempotencyKeyAndFence(t *testing.T) {
	inWorld(t, func(w *world) {
		var got []worker.Task
		n := w.start(matchAll(func(_ context.Context, task *worker.Task) error {
			got = append(got, *task)
			if task.Attempt < 3 {
				return errors.New("broken pipe")
			}
			return nil
		}))
		n.deliver(w.put("a", "one"))
		w.pass(time.Minute)
		n.deliver(w.put("a", "two"))
		w.pass(time.Minute)
		if len(got) != 6 {
			t.Fatalf("%d attempts, want 6", len(got))
		}
		for i, task := range got {
			if want := i%3 + 1; task.Attempt != want {
				t.Errorf("call %d is attempt %d, want %d", i, task.Attempt, want)
			}
			if same := task.IdempotencyKey == got[0].IdempotencyKey; same != (i < 3) || len(task.IdempotencyKey) != 32 {
				t.Errorf("call %d has the key %q, the first has %q", i, task.IdempotencyKey, got[0].IdempotencyKey)
			}
			if i > 0 && task.Fence <= got[i-1].Fence {
				t.Errorf("call %d has the fence %d after %d", i, task.Fence, got[i-1].Fence)
			}
		}
	})
}
