package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// crowd delivers objects of a pipeline, commits all swaps, and returns the number of its running
// attempts.
func crowd(t *testing.T, a *worker, pipeline string, objects int) int {
	t.Helper()
	for i := range objects {
		key := ledger.RowKey{Pipeline: pipeline, Bucket: "b", Key: fmt.Sprint(i)}
		a.step(engine.Deliver{ID: uint64(len(pipeline)*1000 + i + 1), Items: []engine.Item{{Key: key, Event: event.Event{Kind: event.Created, Time: start}}}})
	}
	for len(a.swaps) > 0 {
		for _, swap := range a.takeSwaps() {
			a.land(swap)
			a.step(engine.Swapped{Batch: swap.Batch, Outcomes: swap.landed})
		}
	}
	n := 0
	for k := range a.tasks {
		if k.Pipeline == pipeline {
			n++
		}
	}
	return n
}

func TestPipelinesTakeTurns(t *testing.T) {
	w := newWorld(t)
	a := w.newWorker(engine.Config{
		Owner: "a", Pipelines: []string{"p", "pp"}, Policy: policy(), Tasks: 4, Bytes: 1 << 30, Swaps: 1, Batch: 100, Cache: 10,
	}, 1)
	crowd(t, a, "p", 100)
	crowd(t, a, "pp", 100)
	ran := map[string]int{}
	var running []ledger.RowKey // the longest running attempt first
	for range 40 {
		for _, key := range slices.SortedFunc(maps.Keys(a.tasks), ledger.RowKey.Compare) {
			if !slices.Contains(running, key) {
				running = append(running, key)
			}
		}
		key := running[0]
		task := a.tasks[key]
		running = running[1:]
		delete(a.tasks, key)
		ran[key.Pipeline]++
		a.step(engine.Finished{Key: key, Fence: task.Fence, Result: engine.Completed, Ending: ledger.Ending{Read: ledger.Read{Kind: event.Created}}})
		crowd(t, a, "", 0)
	}
	if ran["p"] < 10 || ran["pp"] < 10 {
		t.Errorf("40 attempts, by pipeline %v: want progress of both", ran)
	}
}

func TestSlowPipelineLeavesRoomInTheBacklog(t *testing.T) {
	const objects, waiting = 60, 5
	w := newWorld(t)
	a := w.newWorker(engine.Config{
		Owner: "a", Pipelines: []string{"p", "pp"}, Policy: policy(), Tasks: 4, Waiting: waiting, Bytes: 1 << 30, Swaps: 1, Batch: 10, Cache: 10, SweepInterval: time.Second,
	}, 1)
	running := crowd(t, a, "p", objects)
	if n := a.Pending(); n > running+waiting {
		t.Errorf("%d objects are in memory, of which %d run: want at most %d that wait", n, running, waiting)
	}
	if crowd(t, a, "pp", 1) != 1 {
		t.Error("the other pipeline makes no progress")
	}
	done := 0
	for range 10 * objects {
		for key, task := range a.tasks {
			delete(a.tasks, key)
			done++
			a.step(engine.Finished{Key: key, Fence: task.Fence, Result: engine.Completed, Ending: ledger.Ending{Read: ledger.Read{Kind: event.Created}}})
			break
		}
		w.now = w.now.Add(time.Second)
		a.step(engine.Tick{})
		for _, sweep := range a.takeSweeps() {
			a.step(engine.Swept{Pipeline: sweep.Pipeline, Rows: w.due(sweep)})
		}
		crowd(t, a, "", 0)
	}
	if done != objects+1 {
		t.Errorf("%d objects were handled, want %d", done, objects+1)
	}
}

func TestQuarantineWaitsForItsOwnPipelineFirst(t *testing.T) {
	w := newWorld(t)
	two := policy()
	two.Attempts = 2
	add := func(owner string) *worker {
		return w.newWorker(engine.Config{
			Owner: owner, Pipelines: []string{"p", "pp"}, Policy: two, Tasks: 8, Bytes: 1 << 30, Swaps: 1, Batch: 100, Cache: 10, SweepInterval: time.Second,
		}, 1)
	}
	crowd(t, add("lost"), "p", 1)
	a := add("a")
	pass := func(d time.Duration) {
		w.now = w.now.Add(d)
		a.step(engine.Tick{})
		for _, sweep := range a.takeSweeps() {
			a.step(engine.Swept{Pipeline: sweep.Pipeline, Rows: w.due(sweep)})
		}
		crowd(t, a, "", 0)
	}
	end := func(pipeline string) {
		for key, task := range a.tasks {
			if key.Pipeline == pipeline {
				delete(a.tasks, key)
				a.step(engine.Finished{Key: key, Fence: task.Fence, Result: engine.Completed, Ending: ledger.Ending{Read: ledger.Read{Kind: event.Created}}})
			}
		}
		crowd(t, a, "", 0)
	}
	if n := crowd(t, a, "p", 3); n != 2 {
		t.Fatalf("%d attempts run together with the attempt of the lost worker, want 2", n)
	}
	pass(20 * time.Second)
	pass(20 * time.Second) // the lost worker's lease has expired
	if n := crowd(t, a, "pp", 1); n != 1 {
		t.Fatalf("%d attempts of the other pipeline run while the first is busy", n)
	}
	end("p")
	if n := crowd(t, a, "pp", 2); n != 1 {
		t.Fatalf("%d attempts of the other pipeline run while a quarantined one waits", n)
	}
	end("pp")
	if n := len(a.tasks); n != 1 || crowd(t, a, "p", 0) != 1 {
		t.Fatalf("%d attempts run, %d of them quarantined, want only the quarantined one", n, crowd(t, a, "p", 0))
	}
	end("p")
	if n := crowd(t, a, "pp", 0); n != 2 {
		t.Fatalf("%d attempts run afterwards, want the two that waited", n)
	}
}
