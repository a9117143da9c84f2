package simkit_test

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
)

func TestEventOrder(t *testing.T) {
	w := &simkit.World{Tape: simkit.NewTape(1)}
	var got []int
	for i, d := range []time.Duration{3, 1, 2, 1, 3, 0} {
		w.After(d, func() { got = append(got, i) })
	}
	w.After(1, func() { w.At(0, simkit.Func(func() { got = append(got, 6) })) })
	for w.Step() {
	}
	if want := []int{5, 1, 3, 6, 2, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("events came in order %v, want %v", got, want)
	}
	if w.Now != 3 || w.Steps != 8 {
		t.Errorf("%d steps until %v, want 8 until 3ns", w.Steps, w.Now)
	}
}

type worker struct{ simkit.Thread }

func newThreads() *simkit.Threads[*worker] {
	return &simkit.Threads[*worker]{New: func() *worker { return &worker{} }}
}

func TestAbortRunsDeferredFunctions(t *testing.T) {
	threads := newThreads()
	defer threads.Close()
	first := threads.Get()
	cleaned, passed := false, false
	threads.Start(first, func() {
		defer func() {
			cleaned = true
			first.Yield() // must not wait
		}()
		first.Yield()
		passed = true
		first.Yield()
	})
	threads.Resume(first)
	threads.Abort()
	if !passed || !cleaned || len(threads.Running) > 0 {
		t.Errorf("resumed %v, cleaned up %v, running %d, want true, true and 0", passed, cleaned, len(threads.Running))
	}
	if threads.Get() != first {
		t.Error("the idle thread is not used again")
	}
}

func TestRunShrinksTheFirstFailure(t *testing.T) {
	s := simkit.Simulation[*simkit.Threads[*worker]]{Threads: newThreads, RunWorld: func(_ *simkit.Threads[*worker], w *simkit.World) {
		faults := 0
		for range 10 {
			w.After(w.Tape.UpTo(time.Second), func() {
				if w.Tape.Fault(20, simkit.Lost, simkit.Late) == simkit.Late {
					faults++
					w.Tracef("fault %d", faults)
				}
			})
		}
		for w.Step() {
		}
		if faults >= 2 {
			w.Violatef("T1", "%d faults", faults)
		}
	}}
	f, steps := s.Run(t.Context(), 1, 100_000)
	if f == nil || steps == 0 {
		t.Fatal("no world fails")
	}
	for seed := uint64(1); seed <= f.Seed; seed++ {
		if failed := len(s.Replay(simkit.NewTape(seed)).Violations) > 0; failed != (seed == f.Seed) {
			t.Errorf("seed %d fails: %v, but the reported first failing seed is %d", seed, failed, f.Seed)
		}
	}
	w := s.Replay(simkit.ReplayTape(f.Shrunk))
	if want := []string{"T1: 2 faults"}; len(w.Violations) != 1 || w.Violations[0].String() != want[0] {
		t.Errorf("the shrunk world has %v, want %v", w.Violations, want)
	}
	if len(f.Trace) != 3 || !slices.Equal(f.Trace, *w.Trace) {
		t.Errorf("trace:\n%v\nwant two faults and a violation", f.Trace)
	}
}

func TestEachStopsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var n atomic.Uint64
	simkit.Each(ctx, 1, 1_000_000, 1, func(seeds iter.Seq[uint64]) {
		for range seeds {
			if n.Add(1) == 3 {
				stop()
			}
		}
	})
	if n.Load() != 3 {
		t.Errorf("%d worlds were played, want 3", n.Load())
	}
}
