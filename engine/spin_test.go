package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// The clock goes back by an hour between the claim of a failed object and the renewal. When the
// lease expires, the row is due but not claimable, and the engine must not retry in a loop.
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
		Owner: "a", Pipelines: []string{"p"}, Policy: policy(), Tasks: 1, Bytes: 1, Swaps: 1, Batch: 1, SweepInterval: time.Second,
	}, 1)
	w.now = start.Add(time.Minute)
	sweep := a.step(engine.Tick{})[0].(engine.Sweep)
	rows := w.due(sweep)
	if len(rows) != 1 {
		t.Fatalf("%d rows are due, want the one whose lease is over", len(rows))
	}
	a.step(engine.Swept{Pipeline: "p", Rows: rows})
	if len(a.swaps) != 0 || !a.Idle() || !a.Next().After(w.now) {
		t.Errorf("%d swaps, idle %t, next at %v: want no change of the row", len(a.swaps), a.Idle(), a.Next().Sub(w.now))
	}
	w.now = start.Add(2 * time.Hour)
	rows = w.due(engine.Sweep{Pipeline: "p", Before: w.now, Limit: 1})
	a.step(engine.Swept{Pipeline: "p", Rows: rows})
	if len(a.swaps) != 1 {
		t.Error("the row is not claimed when its time has come")
	}
}

// An attempt ends after its lease while the ledger is slow, and the only due row is its own. The
// engine must not sweep in a loop.
func TestSweepDuringPendingSwap(t *testing.T) {
	w := newWorld(t)
	seq, err := event.ParseSequencer("01")
	if err != nil {
		t.Fatal(err)
	}
	w.write(ledger.Row{RowKey: parseKey("k"), Want: ledger.Version{Sequencer: seq, Kind: event.Created}, UpdatedAt: start}, ledger.Nonce{})
	a := w.newWorker(engine.Config{
		Owner: "a", Pipelines: []string{"p"}, Policy: policy(), Tasks: 1, Bytes: 1, Swaps: 1, Batch: 1, SweepInterval: time.Second,
	}, 1)
	a.step(engine.Tick{})
	a.step(engine.Swept{Pipeline: "p", Rows: w.due(a.takeSweeps()[0])})
	claim := a.takeSwaps()[0]
	a.land(claim)
	a.step(engine.Swapped{Batch: claim.Batch, Outcomes: claim.landed})

	w.now = start.Add(time.Hour)
	task := a.tasks[parseKey("k")]
	a.step(engine.Finished{Key: task.Key, Fence: task.Fence, Result: engine.Completed})
	sweeps := a.takeSweeps()
	if len(sweeps) != 1 || len(a.swaps) != 1 {
		t.Fatalf("%d sweeps, %d swaps: want one of each", len(sweeps), len(a.swaps))
	}
	rows := w.due(sweeps[0])
	a.step(engine.Swept{Pipeline: "p", Rows: rows})
	if len(rows) != 1 || len(a.sweeps) != 0 || !a.Next().After(w.now) {
		t.Errorf("%d rows are due, and the engine started %d sweeps immediately, want 1 and 0", len(rows), len(a.sweeps))
	}
}

// The engine must neither write nor sweep again at once. A second sweep finds a row that another
// worker has changed.
func TestSweepFromOlderSnapshot(t *testing.T) {
	w := newWorld(t)
	seq, err := event.ParseSequencer("01")
	if err != nil {
		t.Fatal(err)
	}
	w.write(ledger.Row{RowKey: parseKey("k"), Want: ledger.Version{Sequencer: seq, Kind: event.Created}, UpdatedAt: start}, ledger.Nonce{})
	a := w.newWorker(engine.Config{
		Owner: "a", Pipelines: []string{"p"}, Policy: policy(), Tasks: 1, Bytes: 1, Swaps: 1, Batch: 1, Cache: 1, SweepInterval: time.Second,
	}, 1)
	a.step(engine.Tick{})
	old := w.due(a.takeSweeps()[0])
	w.now = start.Add(time.Second)
	a.step(engine.Swept{Pipeline: "p", Rows: old})
	claim := a.takeSwaps()[0]
	a.land(claim)
	a.step(engine.Swapped{Batch: claim.Batch, Outcomes: claim.landed})
	task := a.tasks[parseKey("k")]
	a.step(engine.Finished{Key: task.Key, Fence: task.Fence, Result: engine.Completed, Ending: ledger.Ending{Read: ledger.Read{Kind: event.Created}}})
	end := a.takeSwaps()[0]
	a.land(end)
	a.step(engine.Swapped{Batch: end.Batch, Outcomes: end.landed})

	w.now = start.Add(10 * time.Second)
	a.step(engine.Tick{})
	a.takeSweeps()
	a.step(engine.Swept{Pipeline: "p", Rows: old})
	if len(a.swaps) != 0 || len(a.takeSweeps()) != 0 {
		t.Fatal("a settled row is processed again because of an older snapshot")
	}
	w.now = start.Add(20 * time.Second)
	a.step(engine.Tick{})
	a.takeSweeps()
	a.step(engine.Swept{Pipeline: "p", Rows: old})
	if len(a.swaps) != 1 {
		t.Error("a row that every sweep returns as due is never processed")
	}
}

func TestUnreadableRowsAreReportedOnce(t *testing.T) {
	w := newWorld(t)
	a := w.newWorker(engine.Config{
		Owner: "a", Pipelines: []string{"p"}, Policy: policy(), Tasks: 2, Bytes: 1, Swaps: 1, Batch: 1, Cache: 10, SweepInterval: time.Second,
	}, 1)
	odd := []ledger.Row{
		ledger.UnreadableRow(parseKey("x"), ledger.Nonce{1}, errors.New("odd")), ledger.UnreadableRow(parseKey("y"), ledger.Nonce{2}, errors.New("odd")),
	}
	first := a.step(engine.Tick{})[0].(engine.Sweep)
	reported := 0
	for _, act := range a.step(engine.Swept{Pipeline: "p", Rows: odd}) {
		if r, ok := act.(engine.Notice); ok && r.Kind == engine.Unreadable {
			reported++
		}
	}
	w.now = w.now.Add(10 * time.Second)
	a.step(engine.Tick{})
	second := a.takeSweeps()
	if reported != 2 || len(second) == 0 || second[len(second)-1].Limit != first.Limit+4 {
		t.Fatalf("%d rows are reported, and the next sweeps are %+v; the first had the limit %d", reported, second, first.Limit)
	}
	if out := a.step(engine.Swept{Pipeline: "p", Rows: odd}); len(out) != 0 {
		t.Errorf("%v: reported again", out)
	}

	a.step(engine.Deliver{ID: 7, Items: []engine.Item{{Key: parseKey("x"), Event: event.Event{Kind: event.Created}}}})
	swap := a.takeSwaps()[0]
	var answer *engine.Answer
	for _, act := range a.step(engine.Swapped{Batch: swap.Batch, Outcomes: []ledger.Outcome{{Current: &odd[0]}}}) {
		if r, ok := act.(engine.Answer); ok {
			answer = &r
		}
	}
	if answer == nil || answer.Ack || answer.After == 0 || !a.Idle() {
		t.Errorf("the event of an unreadable row is answered %+v, want a redelivery", answer)
	}
}

func TestUnreadableRowsDoNotBlockSweeps(t *testing.T) {
	w := newWorld(t)
	a := w.newWorker(engine.Config{
		Owner: "a", Pipelines: []string{"p"}, Policy: policy(), Tasks: 2, Bytes: 1, Swaps: 1, Batch: 1, Cache: 10, SweepInterval: time.Second,
	}, 1)
	all := make([]ledger.Row, 15_000)
	for i := range all {
		all[i] = ledger.UnreadableRow(parseKey(fmt.Sprint("x", i)), ledger.Nonce{byte(i), byte(i >> 8)}, errors.New("odd"))
	}
	a.step(engine.Tick{})
	asked := 0
	for sweeps := a.takeSweeps(); len(sweeps) > 0; sweeps = a.takeSweeps() {
		if asked++; asked > 100 {
			t.Fatal("the engine sweeps in a loop")
		}
		a.step(engine.Swept{Pipeline: "p", Rows: all[:min(len(all), sweeps[0].Limit)]})
	}
	if asked > 20 {
		t.Errorf("asked %d times in a row", asked)
	}
}
