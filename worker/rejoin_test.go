package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/worker"
)

// A zombie is a worker that outlived its lease. Its write is on its way while
// another takes over, and lands after the horizon: only its own word heals it.
func TestAZombieThatSpeaksAgainHasItsWriteVerified(t *testing.T) {
	inWorld(t, func(w *world) {
		briefly := func(c *worker.Config) { c.Policy.Horizon = time.Second }
		zombie := w.start(toOut(upper), briefly)
		reached, release := make(chan struct{}), make(chan struct{})
		zombie.store.Next(buckettest.Put, onItsWay(reached, release))
		zombie.deliver(w.put("a", "one"))
		<-reached
		zombie.ledger.cutOff()

		other := w.start(toOut(upper), briefly)
		other.deliver(w.remove("a"))
		w.pass(2 * time.Minute)
		w.wantSettled("a")
		if r := w.row("a"); !r.VerifyAt.IsZero() || other.Stats().TakenOver != 1 {
			t.Fatalf("taken over %d times, to be verified at %s", other.Stats().TakenOver, r.VerifyAt)
		}
		close(release)
		synctest.Wait()
		w.wantOutput("a", "ONE") // nobody knows but the zombie
		w.pass(time.Minute)
		w.wantOutput("a", "ONE")
		zombie.ledger.mend()
		w.pass(5 * time.Second)
		w.wantOutput("a", "")
		w.wantSettled("a")
		if zombie.Stats().Lost != 1 || len(w.log.having("WARN", "an attempt ended without its lease", "s3://in/a")) != 1 {
			t.Errorf("%+v\n%q", zombie.Stats(), w.log.lines)
		}
	})
}
