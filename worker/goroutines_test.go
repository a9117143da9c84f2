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

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

func wantNoGoroutine(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for g := range strings.SplitSeq(string(stacks), "\n\n") {
		timer := strings.Contains(g, "time.goFunc") // has nothing left to do
		if strings.Contains(g, "/worker.(*Worker)") && !timer {
			t.Errorf("left behind:\n%s", g)
		}
	}
}

func TestRunLeavesNoGoroutine(t *testing.T) {
	slow := func(ctx context.Context, _ *worker.Task) error {
		<-ctx.Done()
		<-time.After(time.Second)
		return context.Cause(ctx)
	}
	for name, c := range map[string]struct {
		handler worker.HandlerFunc
		before  func(n *node)
	}{
		"idle":                 {upper, func(*node) {}},
		"handlers":             {slow, func(*node) {}},
		"a ledger that hangs":  {slow, func(n *node) { n.ledger.disconnect() }},
		"an unusable ledger":   {slow, func(n *node) { n.ledger.fail(ledger.ErrUnusable) }},
		"a sweep that is slow": {upper, func(n *node) { n.ledger.slow(time.Hour) }},
		"a write that is slow": {upper, func(n *node) { n.ledger.meet("claimed", answered(time.Hour)) }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(toOut(c.handler))
				for i := range 10 {
					n.deliver(w.put(fmt.Sprint("k", i), "x"))
				}
				c.before(n)
				w.pass(3 * time.Second)
				n.deliver(w.put("last", "x"))
				_ = n.stop()
				wantNoGoroutine(t)
			})
		})
	}
}

func TestShutdownLogsUnresponsiveHandlers(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(n *node)
		after time.Duration // until the handler is logged
		says  string
	}{
		"asked to end":       {func(n *node) { n.cancel() }, grace + ledgerTimeout, "handlers did not return in time during shutdown"},
		"an unusable ledger": {func(n *node) { n.ledger.fail(ledger.ErrUnusable) }, 2*time.Second + ledgerTimeout, "database unusable"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				release := make(chan struct{})
				n := w.start(matchAll(func(_ context.Context, task *worker.Task) error {
					if task.Object.Key != "done" {
						<-release
					}
					return nil
				}), func(c *worker.Config) { c.SweepInterval = time.Hour })
				for _, key := range []string{"b\n", "a", "done"} {
					n.deliver(w.put(key, "x"))
				}
				w.pass(ttl) // the renewal detects it
				from := w.since()
				c.begin(n)
				w.pass(c.after - time.Second)
				if got := w.log.having("ignores its cancelled context"); len(got) != 0 {
					t.Errorf("after %s: %q", w.since()-from, got)
				}
				w.pass(2 * ttl)
				const text = "WARN shutdown waits for a handler that ignores its cancelled context pipeline=upper object="
				if diff := cmp.Diff([]string{text + "s3://in/a", text + `"s3://in/b\n"`}, w.log.having("ignores its cancelled context")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				select {
				case <-n.ended:
					t.Error("Run returned while handlers were running")
				default:
				}
				other := w.start(matchAll((&busy{}).handle))
				w.pass(ttl)
				w.wantSettled("a")
				if other.Stats().TakenOver != 2 {
					t.Errorf("%+v", other.Stats())
				}
				if err := other.stop(); err != nil {
					t.Error(err)
				}
				close(release)
				if err := n.stop(); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("ended with %v", err)
				}
				wantNoGoroutine(t)
			})
		})
	}
}

func TestTaskEndsWithItsHandler(t *testing.T) {
	inWorld(t, func(w *world) {
		var left context.Context
		var to io.Writer
		n := w.start(toOut(func(ctx context.Context, task *worker.Task) (err error) {
			left = ctx
			if to, err = task.Output("text/plain"); err == nil {
				_, err = to.Write(make([]byte, 5<<20)) // larger than the memory buffer
			}
			return err
		}))
		n.deliver(w.put("a", "one"))
		w.wantSettled("a")
		if left.Err() == nil {
			t.Error("the handler's context has not ended")
		}
		if _, err := to.Write([]byte("more")); err == nil {
			t.Error("the output is still writable")
		}
	})
}

func TestUnresponsiveHandlerRunsAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		calls, release := 0, make(chan struct{})
		n := w.start(matchAll(func(context.Context, *worker.Task) error {
			if calls++; calls == 1 {
				<-release
				return errors.New("much too late")
			}
			return nil
		}))
		n.deliver(w.put("a", "one"))
		w.change("a", func(r *ledger.Row) { // another worker had the lease briefly
			r.Lease = ledger.Lease{Fence: r.Lease.Fence + 1}
			r.Want.Generation++
		})
		n.deliver(w.put("a", "two")).wantAck(w)
		w.pass(3 * ttl)
		if calls != 1 {
			t.Errorf("handled %d times while the first still runs", calls)
		}
		close(release)
		w.pass(5 * time.Second)
		if calls != 2 {
			t.Errorf("handled %d times, want 2", calls)
		}
		w.wantSettled("a")
	})
}
