package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/worker"
)

func (w *world) during(d time.Duration, err error) []buckettest.Fault {
	fault := func(ctx context.Context, do func(context.Context) error) error {
		if w.since() < d {
			return fmt.Errorf("%w (a fault)", err)
		}
		return do(ctx)
	}
	return slices.Repeat([]buckettest.Fault{fault}, 10_000)
}

func TestStoreOutageOfTenMinutes(t *testing.T) {
	const long = 10 * time.Minute
	credentials := fmt.Errorf("%w: ExpiredToken", bucket.ErrCredentials)
	for _, c := range []struct {
		name string
		op   buckettest.Op // kind of the calls that fail
		err  error
	}{
		{"credentials, at the look", buckettest.Head, credentials},
		{"credentials, at the read", buckettest.Get, credentials},
		{"credentials, at the write", buckettest.Put, credentials},
		{"every look denied", buckettest.Head, bucket.ErrDenied},
		{"every read denied", buckettest.Get, bucket.ErrDenied},
		{"every write denied", buckettest.Put, bucket.ErrDenied},
		{"descriptors, at the write", buckettest.Put, fmt.Errorf("%w: dial tcp: %w", bucket.ErrUnclear, os.NewSyscallError("socket", syscall.EMFILE))},
		{"descriptors, in the handler", "", &os.PathError{Op: "fork/exec", Path: "/bin/true", Err: syscall.EMFILE}},
		{"disk, in the handler", "", &os.PathError{Op: "write", Path: "/tmp/x", Err: syscall.ENOSPC}},
		{"processes, in the handler", "", fmt.Errorf("convert failed: %w", syscall.EAGAIN)},
		{"as the handler says", "", fmt.Errorf("load: %w", worker.Outage(errors.New("the database is down")))},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					if c.op == "" && w.since() < long {
						return c.err
					}
					return upper(ctx, task)
				}), attempts(2))
				if c.op != "" {
					n.store.Next(c.op, w.during(long, c.err)...)
				}
				var events []event.Event
				for i := range 50 {
					events = append(events, w.put(fmt.Sprint(i), "one"))
				}
				n.deliver(events...).wantAck(w)
				w.pass(long + 2*time.Minute)
				for i := range 50 {
					w.wantSettled(fmt.Sprint(i))
					w.wantOutput(fmt.Sprint(i), "ONE")
				}
				if lines := w.log.having("WARN"); len(lines) >= 30 || len(lines) == 0 || !strings.Contains(lines[0], c.err.Error()) {
					t.Errorf("%d lines are logObserver: %q", len(lines), lines)
				}
				if lines := w.log.having("ERROR"); len(lines) != 0 {
					t.Errorf("logObserver %q", lines)
				}
			})
		})
	}
}

func TestDenialOfOneObjectIsNoOutage(t *testing.T) {
	inWorld(t, func(w *world) {
		var n *node
		n = w.start(toOut(func(ctx context.Context, task *worker.Task) error {
			if strings.HasPrefix(task.Object.Key, "secret") {
				n.store.Next(buckettest.Get, buckettest.Answer(bucket.ErrDenied))
			}
			return upper(ctx, task)
		}), attempts(3), func(c *worker.Config) { c.Concurrency = 1 })
		n.deliver(w.put("secret 1", "x"), w.put("secret 2", "x")).wantAck(w)
		for i := range 300 {
			n.deliver(w.put(fmt.Sprint(i), "one")).wantAck(w)
			w.pass(time.Second)
		}
		for _, key := range []string{"secret 1", "secret 2"} {
			if r := w.row(key); !r.Dead || !strings.Contains(r.LastError, "access denied") {
				t.Errorf("%s is not dead but %s after %d attempts: %s", key, r.State(time.Now()), r.Attempts, r.LastError)
			}
		}
	})
}

func TestPermanentCountsInAnOutage(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(func(context.Context, *worker.Task) error { return worker.Permanent(syscall.ENOSPC) }))
		n.deliver(w.put("a", "one")).wantAck(w)
		if r := w.row("a"); !r.Dead {
			t.Errorf("it is not dead, but %s", r.State(time.Now()))
		}
	})
}

func TestLedgerOutageOfTenMinutes(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		n.ledger.fail(errors.New("database or disk is full"))
		a := n.deliver(w.put("a", "one"), w.put("b", "two"))
		w.pass(10 * time.Minute)
		n.ledger.mend()
		w.pass(time.Minute)
		a.wantAck(w)
		w.wantSettled("a")
		w.wantSettled("b")
		if lines := w.log.having("database or disk is full"); len(lines) >= 30 || len(lines) < 2 {
			t.Errorf("%d lines are logObserver: %q", len(lines), lines)
		}
	})
}
