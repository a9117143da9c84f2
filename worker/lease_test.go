package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

const (
	ttl  = 30 * time.Second // as in ledger.DefaultPolicy
	skew = 5 * time.Second
	// tick is the maximum delay with which a worker notices that something is due.
	tick = time.Millisecond
)

type busy struct {
	work time.Duration

	mu    sync.Mutex
	cause error     // of the last call's cancellation
	at    time.Time // end of the last call
}

func (b *busy) handle(ctx context.Context, _ *worker.Task) error {
	var cause error
	select {
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-time.After(b.work):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cause, b.at = cause, time.Now()
	return cause
}

func TestRenewalsKeepTheLease(t *testing.T) {
	inWorld(t, func(w *world) {
		b := &busy{work: 5*ttl + time.Second}
		n := w.start(matchAll(b.handle))
		n.deliver(w.put("a", "one"))
		for range 150 {
			w.pass(time.Second)
			if r := w.row("a"); !r.Held() || time.Until(r.Lease.Until) < ttl*2/3+skew-time.Second {
				t.Fatalf("after %s the lease lasts another %s", w.since(), time.Until(r.Lease.Until))
			}
		}
		w.pass(2 * time.Second)
		w.wantSettled("a")
		if got := w.recorder.count("swap renewed: ok"); got != 15 {
			t.Errorf("renewed %d times in five times the TTL, want 15", got)
		}
		if b.cause != nil {
			t.Errorf("cancelled: %v", b.cause)
		}
	})
}

func TestPartitionedWorkerStopsBeforeTakeover(t *testing.T) {
	for name, cut := range map[string]func(l *faultyLedger){
		"no answer": (*faultyLedger).disconnect,
		"errors":    func(l *faultyLedger) { l.fail(errors.New("the disk is on fire")) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				mine, others := &busy{work: time.Hour}, &busy{work: time.Second}
				n := w.start(matchAll(mine.handle))
				n.deliver(w.put("a", "one"))
				w.pass(ttl/3 + time.Second) // one renewal lands
				cut(n.ledger)
				other := w.start(matchAll(others.handle))
				w.pass(2 * time.Minute)
				last := w.began.Add(ttl / 3) // the renewal that landed
				if late := mine.at.Sub(last.Add(ttl)); !errors.Is(mine.cause, worker.ErrLeaseLost) || late < 0 || late > tick {
					t.Errorf("ended at %s by %v, want %s after %s", mine.at, mine.cause, ttl, last)
				}
				began := others.at.Add(-others.work)
				if latest := mine.at.Add(skew + 2*time.Second); began.Before(mine.at.Add(skew)) || began.After(latest) {
					t.Errorf("taken over at %s, want between %s and %s", began, mine.at.Add(skew), latest)
				}
				if other.Stats().TakenOver != 1 || len(w.log.having("WARN took over", "s3://in/a")) != 1 {
					t.Errorf("%+v\n%q", other.Stats(), w.log.lines)
				}
				w.wantSettled("a")
			})
		})
	}
}

func TestShortLedgerOutageKeepsTheLease(t *testing.T) {
	inWorld(t, func(w *world) {
		b := &busy{work: 2 * ttl}
		n := w.start(matchAll(b.handle))
		n.deliver(w.put("a", "one"))
		n.ledger.disconnect()
		w.pass(ttl - time.Second)
		n.ledger.mend()
		w.pass(2 * ttl)
		w.wantSettled("a")
		if b.cause != nil || n.Stats().Claimed != 1 {
			t.Errorf("cancelled by %v, %+v", b.cause, n.Stats())
		}
	})
}

func TestRefusedRenewalCancelsTheTask(t *testing.T) {
	inWorld(t, func(w *world) {
		b := &busy{work: time.Hour}
		n := w.start(matchAll(b.handle))
		n.deliver(w.put("a", "one"))
		w.change("a", func(r *ledger.Row) {
			r.Lease = ledger.Lease{Owner: "another", Fence: r.Lease.Fence + 1, Until: time.Now().Add(time.Hour)}
		})
		w.pass(ttl/3 + tick)
		if !errors.Is(b.cause, worker.ErrLeaseLost) {
			t.Errorf("after %s: %v", w.since(), b.cause)
		}
		if r := w.row("a"); r.Lease.Owner != "another" || n.Stats().Lost != 1 {
			t.Errorf("the lease is %s's: %+v", r.Lease.Owner, n.Stats())
		}
	})
}

func TestHandlerThatOutlivesItsLease(t *testing.T) {
	inWorld(t, func(w *world) {
		var opened error
		n := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
			<-ctx.Done()
			_, opened = task.Open(ctx)
			return write(task, "too late")
		}))
		n.deliver(w.put("a", "one"))
		n.ledger.disconnect()
		w.pass(ttl)
		if opened == nil {
			t.Error("opened without a lease")
		}
		w.wantOutput("a", "")
		if w.recorder.count("put") != 0 {
			t.Error("published without a lease")
		}
		n.ledger.mend()
		synctest.Wait()
		if r := w.row("a"); r.Held() || !r.VerifyAt.IsZero() || r.Doubt || r.LastError != "lease lost" {
			t.Errorf("no output was sent, but the row has: held %v, verify at %s, doubt %v, %q", r.Held(), r.VerifyAt, r.Doubt, r.LastError)
		}
	})
}

func TestPermanentErrorAfterCancellationIsRetried(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(func(ctx context.Context, _ *worker.Task) error {
			<-ctx.Done()
			return worker.Permanent(errors.New("half a picture"))
		}))
		n.deliver(w.put("a", "one"))
		n.ledger.disconnect()
		w.pass(ttl)
		n.ledger.mend()
		synctest.Wait()
		if r := w.row("a"); r.Dead || r.LastError != "lease lost: half a picture" {
			t.Errorf("dead %v: %q", r.Dead, r.LastError)
		}
	})
}

// The test starts many claims, because the order of goroutines is random.
func TestLateClaimAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		const many = 400
		late := &lateClaim{Store: w.rows, wait: ttl + time.Second}
		var tooLate atomic.Int32
		n := w.start(matchAll(func(ctx context.Context, _ *worker.Task) error {
			if ctx.Err() != nil {
				tooLate.Add(1)
			}
			return nil
		}), func(c *worker.Config) { c.Ledger, c.Concurrency = late, many })
		var events []event.Event
		for i := range many {
			events = append(events, w.put(fmt.Sprint("k", i), "x"))
		}
		n.deliver(events...)
		w.pass(late.wait)
		w.pass(time.Minute)
		if got := tooLate.Load(); got != 0 {
			t.Errorf("%d handlers began after the deadline", got)
		}
		if s := n.Stats(); s.Released != many || s.Failed != 0 {
			t.Errorf("an attempt that has not begun must be released: %+v", s)
		}
		for i := range many {
			w.wantSettled(fmt.Sprint("k", i))
		}
	})
}

type lateClaim struct {
	ledger.Store
	wait  time.Duration
	first sync.Once
}

func (s *lateClaim) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	out, err := s.Store.Swap(ctx, changes)
	s.first.Do(func() { <-time.After(s.wait) })
	return out, err
}
