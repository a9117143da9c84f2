package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/storetest"
	"github.com/pawlhq/pawl/worker"
)

const horizon = 15 * time.Minute // ledger.DefaultPolicy's

func TestAPublishWhoseAnswerWasLostIsFound(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		n.store.Next(buckettest.Put, buckettest.Landed)
		n.deliver(w.put("a", "one"))
		w.wantSettled("a")
		if r := w.row("a"); !r.VerifyAt.IsZero() || n.store.Calls(buckettest.Put) != 1 {
			t.Errorf("verify at %s after %d publishes: it is known that it landed", r.VerifyAt, n.store.Calls(buckettest.Put))
		}
	})
}

// A publish without an answer leaves a look due after the horizon, so that even a
// late write into an absent output heals.
func TestAWriteThatLandsAfterTheRemovalHeals(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		var land func() error
		n.store.Next(buckettest.Put, buckettest.Late(&land), buckettest.Lost, buckettest.Lost)
		n.deliver(w.put("a", "one"))
		r := w.row("a")
		if want := time.Now().Add(horizon); !r.VerifyAt.Equal(want) || r.Settled() {
			t.Fatalf("an unsure attempt: %s, verify at %s, want %s", r.State(time.Now()), r.VerifyAt, want)
		}
		n.deliver(w.remove("a"))
		w.wantSettled("a")
		w.wantOutput("a", "")
		if err := land(); err != nil {
			t.Fatal(err)
		}
		w.wantOutput("a", "ONE") // for now
		w.pass(horizon - time.Second - w.since())
		w.wantOutput("a", "ONE")
		w.pass(5 * time.Second)
		w.wantOutput("a", "")
		w.wantSettled("a")
		if r := w.row("a"); !r.VerifyAt.IsZero() {
			t.Errorf("verified, but to be verified again at %s", r.VerifyAt)
		}
	})
}

// An unsure attempt that is made again with success is to be verified even so.
func TestAnUnsureSuccessIsVerified(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		n.store.Next(buckettest.Put, buckettest.Lost)
		n.deliver(w.put("a", "one"))
		w.wantSettled("a")
		w.wantOutput("a", "ONE")
		if want := w.began.Add(horizon); !w.row("a").VerifyAt.Equal(want) {
			t.Errorf("verify at %s, want %s: the first copy may land yet", w.row("a").VerifyAt, want)
		}
		w.pass(horizon + 2*time.Second)
		if s := n.Stats(); s.NothingToDo != 1 || !w.row("a").VerifyAt.IsZero() {
			t.Errorf("after the horizon: %+v", s)
		}
	})
}

// A removal that was sent and not answered may land on what comes back.
func TestAnUnsureRemovalIsVerified(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(upper))
		n.deliver(w.put("a", "one"))
		var land func() error
		n.store.Next(buckettest.Delete, buckettest.Late(&land))
		n.deliver(w.remove("a"))
		w.wantOutput("a", "")
		w.wantSettled("a")
		if want := w.began.Add(horizon); !w.row("a").VerifyAt.Equal(want) {
			t.Errorf("verify at %s, want %s", w.row("a").VerifyAt, want)
		}
		n.deliver(w.put("a", "one")) // the same bytes: the removal's condition holds again
		w.wantOutput("a", "ONE")
		if err := land(); err != nil {
			t.Fatal(err)
		}
		w.wantOutput("a", "")
		w.pass(horizon + 2*time.Second)
		w.wantOutput("a", "ONE")
		w.wantSettled("a")
	})
}

// The worker that takes over an expired lease asks for the verification, in
// case that the zombie never speaks again.
func TestATakeoverIsVerified(t *testing.T) {
	inWorld(t, func(w *world) {
		zombie := w.start(toOut(upper))
		reached, release := make(chan struct{}), make(chan struct{})
		zombie.store.Next(buckettest.Put, onItsWay(reached, release))
		zombie.deliver(w.put("a", "one"))
		<-reached
		zombie.ledger.cutOff()

		other := w.start(toOut(upper))
		other.deliver(w.remove("a"))
		w.pass(time.Minute)
		w.wantSettled("a")
		close(release)
		synctest.Wait()
		w.wantOutput("a", "ONE")
		w.pass(horizon)
		w.wantOutput("a", "")
		w.wantSettled("a")
	})
}

// Answers of the ledger get lost as well: whether the claim or the completion
// landed is found out, and the handler runs once.
func TestLostAnswersOfTheLedger(t *testing.T) {
	for _, fault := range storetest.Faults {
		t.Run(fault.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				handled := 0
				n := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					handled++
					return upper(ctx, task)
				}), func(c *worker.Config) {
					c.Ledger = ledger.Over(storetest.NewFaulty(w.rows.Records(), func(call int) storetest.Fault {
						if call%2 == 1 { // after the pipeline's name: the claim, and what is sent after its answer was lost
							return fault
						}
						return storetest.None
					}))
				})
				answer := n.deliver(w.put("a", "one"))
				w.pass(time.Minute)
				answer.wantAck(w)
				w.wantSettled("a")
				w.wantOutput("a", "ONE")
				if r := w.row("a"); handled != 1 || r.Attempts != 0 || r.Doubt {
					t.Errorf("handled %d times, attempts %d, doubt %v", handled, r.Attempts, r.Doubt)
				}
				if warned := len(w.log.having("WARN", "answer is unclear")) > 0; warned != (fault != storetest.None) {
					t.Errorf("warned: %v", warned)
				}
			})
		})
	}
}

// onItsWay is a write in the network, where no context reaches it.
func onItsWay(reached chan<- struct{}, release <-chan struct{}) buckettest.Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		close(reached)
		<-release
		return do(context.WithoutCancel(ctx))
	}
}
