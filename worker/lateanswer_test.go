package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

func answered(after time.Duration, then ...func()) func(do func()) {
	return func(do func()) {
		do()
		<-time.After(after)
		for _, f := range then {
			f()
		}
	}
}

// Other workers count the lease from the time in the request.
func TestDeadlineCountsFromTheRequest(t *testing.T) {
	for _, c := range []struct {
		name string
		late map[string]time.Duration // delays of answers, after which the ledger is unreachable
		want time.Duration
	}{
		{"claim", map[string]time.Duration{"claimed": 20 * time.Second}, ttl},
		{"renewal", map[string]time.Duration{"renewed": 15 * time.Second}, ttl/3 + ttl},
		{"renewal, at the last moment", map[string]time.Duration{"renewed": 2*ttl/3 - time.Second}, ttl/3 + ttl},
		{"renewal, too late", map[string]time.Duration{"renewed": 2*ttl/3 + time.Second}, ttl},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				b := &busy{work: time.Hour}
				n := w.start(matchAll(b.handle))
				for what, after := range c.late {
					n.ledger.meet(what, answered(after, n.ledger.disconnect))
				}
				n.deliver(w.put("a", "one"))
				w.pass(2 * time.Minute)
				if got := b.at.Sub(w.began); !errors.Is(b.cause, worker.ErrLeaseLost) || got < c.want || got > c.want+tick {
					t.Errorf("ended after %s by %v, want %s", got, b.cause, c.want)
				}
				if until := w.row("a").Lease.Until; b.at.Add(skew).After(until) {
					t.Errorf("ended at %s, but other workers may begin from %s on", b.at, until)
				}
			})
		})
	}
}

// The ledger has the renewed lease, but the handler's context has been cancelled.
func TestLateRenewalDoesNotReviveALease(t *testing.T) {
	inWorld(t, func(w *world) {
		calls, running, causes := 0, 0, []error{}
		n := w.start(matchAll(func(ctx context.Context, _ *worker.Task) error {
			calls++
			if running++; running > 1 {
				t.Error("two at a time")
			}
			defer func() { running-- }()
			if calls > 1 {
				return nil
			}
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			<-time.After(30 * time.Second) // slept in virtual time
			return context.Cause(ctx)
		}))
		n.ledger.meet("renewed", answered(ttl))
		n.deliver(w.put("a", "one"))
		w.pass(ttl/3 + ttl + tick)
		if r := w.row("a"); !r.Held() || r.Live(time.Now().Add(ttl)) {
			t.Errorf("held %v until %s: renewed after its deadline", r.Held(), r.Lease.Until)
		}
		w.pass(2 * time.Minute)
		w.wantSettled("a")
		if s := n.Stats(); calls != 2 || len(causes) != 1 || !errors.Is(causes[0], worker.ErrLeaseLost) || s.Claimed != 2 || s.Failed+s.Lost != 1 {
			t.Errorf("handled %d times, cancelled by %v: %+v", calls, causes, s)
		}
	})
}

func TestLateRefusalOfARenewal(t *testing.T) {
	inWorld(t, func(w *world) {
		mine, others := &busy{work: time.Hour}, &busy{work: time.Hour}
		n := w.start(matchAll(mine.handle))
		n.deliver(w.put("a", "one"))
		var other *node
		n.ledger.meet("renewed", func(do func()) {
			<-time.After(ttl / 3) // delay of the answer
			w.change("a", expired)
			other = w.start(matchAll(others.handle))
			<-time.After(2 * time.Second)
			do()
			<-time.After(2 * time.Second)
		})
		w.pass(2*ttl/3 + 4*time.Second + tick)
		if got := mine.at.Sub(w.began); !errors.Is(mine.cause, worker.ErrLeaseLost) || got > 2*ttl/3+4*time.Second+tick {
			t.Errorf("ended after %s by %v", got, mine.cause)
		}
		w.pass(time.Minute)
		if r := w.row("a"); !r.Live(time.Now()) || other.Stats().TakenOver != 1 || n.Stats().Lost != 1 || others.cause != nil {
			t.Errorf("live %v, %+v, %+v, the other's handler: %v", r.Live(time.Now()), n.Stats(), other.Stats(), others.cause)
		}
	})
}

func TestLongLedgerOutage(t *testing.T) {
	const down = 20 * ttl
	for name, cut := range map[string]func(l *faultyLedger){
		"no answer": (*faultyLedger).disconnect,
		"errors":    func(l *faultyLedger) { l.fail(errors.New("the disk is on fire")) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					select {
					case <-ctx.Done():
						return context.Cause(ctx)
					case <-time.After(time.Second):
					}
					return upper(ctx, task)
				}))
				var all []*answers
				for i := range 4 {
					all = append(all, n.deliver(w.put(fmt.Sprint("running ", i), "x")))
				}
				cut(n.ledger)
				for i := range 20 {
					all = append(all, n.deliver(w.put(fmt.Sprint("new ", i), "x")))
				}
				w.pass(down)
				for i, a := range all {
					if got := len(a.all()); got > 0 != (i < 4) {
						t.Errorf("delivery %d has %d answers while the ledger is down", i, got)
					}
				}
				if n.ledger.most > 3 || n.ledger.failed > int(2*down/time.Second) { // at most two writes and one sweep at a time
					t.Errorf("%d calls waited at a time, %d failed in %s", n.ledger.most, n.ledger.failed, down)
				}
				n.ledger.mend()
				w.pass(5 * time.Minute)
				for _, a := range all {
					a.wantAck(w)
				}
				for i := range 4 {
					w.wantSettled(fmt.Sprint("running ", i))
				}
				for i := range 20 {
					w.wantSettled(fmt.Sprint("new ", i))
					w.wantOutput(fmt.Sprint("new ", i), "X")
				}
				synctest.Wait()
			})
		})
	}
}

func expired(r *ledger.Row) { r.Lease.Until = time.Now().Add(-time.Second) }
