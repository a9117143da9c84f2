package worker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/worker"
)

// A zombie is a worker that outlived its lease. Wherever it fell asleep, what
// it does when it wakes up does not replace a newer output.
func TestAZombieCannotReplaceANewerOutput(t *testing.T) {
	for _, c := range []struct {
		asleep string
		op     buckettest.Op
		before int // calls that pass
	}{
		{"looking at the output", buckettest.Head, 0},
		{"looking at the input", buckettest.Head, 1},
		{"reading the input", buckettest.Get, 0},
		{"writing the output", buckettest.Put, 0},
	} {
		for _, existed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, existed %v", c.asleep, existed), func(t *testing.T) {
				inWorld(t, func(w *world) {
					zombie := w.start(toOut(upper))
					if existed {
						zombie.deliver(w.put("a", "zero"))
					}
					reached, release := make(chan struct{}), make(chan struct{})
					for range c.before {
						zombie.store.Next(c.op, buckettest.Pass)
					}
					zombie.store.Next(c.op, onItsWay(reached, release))
					zombie.deliver(w.put("a", "one"))
					<-reached
					zombie.ledger.cutOff()

					other := w.start(toOut(upper))
					other.deliver(w.put("a", "two"))
					w.pass(time.Minute)
					w.wantOutput("a", "TWO")
					w.wantSettled("a")
					close(release)
					synctest.Wait()
					w.wantOutput("a", "TWO")
					w.pass(time.Hour)
					w.wantOutput("a", "TWO")
					w.wantSettled("a")
				})
			})
		}
	}
}

// A handler that does not heed its context is a zombie too.
func TestADeafHandlerPublishesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		release := make(chan struct{})
		zombie := w.start(toOut(func(_ context.Context, task *worker.Task) error {
			<-release
			return write(task, "made of an old one")
		}))
		zombie.deliver(w.put("a", "one"))
		zombie.ledger.cutOff()
		other := w.start(toOut(upper))
		other.deliver(w.put("a", "two"))
		w.pass(time.Minute)
		close(release)
		synctest.Wait()
		w.wantOutput("a", "TWO")
		if w.tape.count("put out/up/a") != 1 {
			t.Error("the zombie published")
		}
	})
}

// Never two at a time within the lease, and a live lease is left alone: two
// workers hear of the same objects.
func TestTwoWorkersShareTheWork(t *testing.T) {
	inWorld(t, func(w *world) {
		running, most := map[string]int{}, 0
		shared := make(chan struct{}, 1)
		handle := func(_ context.Context, task *worker.Task) error {
			shared <- struct{}{}
			running[task.Object.Key]++
			most = max(most, running[task.Object.Key])
			<-shared
			<-time.After(time.Minute) // longer than the TTL
			shared <- struct{}{}
			running[task.Object.Key]--
			<-shared
			return nil
		}
		a, b := w.start(matchAll(handle)), w.start(matchAll(handle))
		for i := range 20 {
			e := w.put(fmt.Sprint("k", i%5), fmt.Sprint("content ", i))
			a.deliver(e)
			b.deliver(e)
		}
		w.pass(time.Hour)
		for i := range 5 {
			w.wantSettled(fmt.Sprint("k", i))
		}
		if most != 1 || a.Stats().TakenOver+b.Stats().TakenOver != 0 {
			t.Errorf("%d at a time; taken over %d and %d times", most, a.Stats().TakenOver, b.Stats().TakenOver)
		}
	})
}

// Clocks that differ by less than the margin keep two workers apart. Beyond it
// they overlap, which costs time and never an output.
func TestClocksThatDiffer(t *testing.T) {
	for _, c := range []struct {
		ahead   time.Duration // the second worker's clock
		overlap bool
	}{
		{-time.Minute, false},
		{-skew, false},
		{0, false},
		{skew - time.Second, false},
		{skew, false},
		{skew + 10*time.Second, true},
		{10 * time.Minute, true},
	} {
		t.Run(c.ahead.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				var ended, began time.Duration
				first := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					<-ctx.Done()
					ended = w.since()
					return write(task, "made by the first")
				}))
				first.deliver(w.put("a", "one"))
				first.ledger.cutOff()
				second := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					began = w.since()
					return upper(ctx, task)
				}), func(c2 *worker.Config) { c2.Ledger.(*link).ahead = c.ahead })
				second.deliver(w.event(in("a"), event.Created))
				w.pass(10 * time.Minute)
				if ended != ttl || (began < ended) != c.overlap {
					t.Errorf("the first ended at %s, the second began at %s", ended, began)
				}
				w.wantOutput("a", "ONE")
			})
		})
	}
}
