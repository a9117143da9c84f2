package engine_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// TestClockPutBack: a worker claimed an object after its back-off, its clock was
// put back by an hour, and it renewed. When that lease expires, the back-off
// seems to be still to come. The row is due, but cannot be claimed: the engine
// must leave it alone, and not try for ever.
func TestClockPutBack(t *testing.T) {
	w := newWorld(t)
	seq, err := event.ParseSequencer("01")
	if err != nil {
		t.Fatal(err)
	}
	w.write(ledger.Row{
		RowKey: parseKey("k"), Want: ledger.Version{Sequencer: seq, Kind: event.Created}, Attempts: 2,
		Lease: ledger.Lease{Owner: "gone", Fence: 7, Until: start.Add(time.Second)}, RetryAt: start.Add(time.Hour),
	}, ledger.Nonce{})
	a := w.newWorker(engine.Config{
		Owner: "a", Pipelines: []string{"p"}, Policy: policy(), Tasks: 1, Bytes: 1, Swaps: 1, Batch: 1, Sweep: time.Second,
	}, 1)
	w.now = start.Add(time.Minute)
	sweep := a.step(engine.Tick{})[0].(engine.Sweep)
	rows := w.due(sweep)
	if len(rows) != 1 {
		t.Fatalf("%d rows are due, want the one whose lease is over", len(rows))
	}
	a.step(engine.Swept{Pipeline: "p", Rows: rows})
	if len(a.swaps) != 0 || !a.Idle() {
		t.Errorf("%d swaps, idle %t: want the row left alone", len(a.swaps), a.Idle())
	}
	w.now = start.Add(2 * time.Hour)
	rows = w.due(engine.Sweep{Pipeline: "p", Before: w.now, Limit: 1})
	a.step(engine.Swept{Pipeline: "p", Rows: rows})
	if len(a.swaps) != 1 {
		t.Error("the row is not claimed when its time has come")
	}
}
