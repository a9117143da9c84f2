package simkit

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Each distributes count consecutive seeds, starting with first, to goroutines. It ends when all seeds are
// used or ctx ends. If threads is 0, it uses all processors.
func Each(ctx context.Context, first, count uint64, threads int, work func(seeds iter.Seq[uint64])) {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	var taken atomic.Uint64
	seeds := func(yield func(uint64) bool) {
		for ctx.Err() == nil {
			n := taken.Add(1) - 1
			if n >= count || !yield(first+n) {
				return
			}
		}
	}
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() { work(seeds) })
	}
	wg.Wait()
}

// Simulation runs worlds of one kind. Threads returns the threads that the worlds of a goroutine share.
type Simulation[P interface{ Close() }] struct {
	Threads func() P
	// RunWorld runs one world to its end.
	RunWorld func(threads P, w *World)
}

// Failure is a world that violated an invariant.
type Failure struct {
	Seed       uint64
	Violations []Violation
	Shrunk     []uint32 // shortest tape with the same violation
	Trace      []string // of the shrunk world
}

// Run runs worlds of consecutive seeds until one fails. It returns the failure with the smallest seed, or
// nil, and the number of steps.
func (s Simulation[P]) Run(ctx context.Context, first, count uint64) (*Failure, uint64) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	var failed *Failure
	var steps atomic.Uint64
	Each(ctx, first, count, 0, func(seeds iter.Seq[uint64]) {
		p := s.Threads()
		defer p.Close()
		for seed := range seeds {
			w := &World{Tape: NewTape(seed)}
			s.RunWorld(p, w)
			steps.Add(uint64(w.Steps))
			if len(w.Violations) == 0 {
				continue
			}
			stop()
			mu.Lock()
			if failed == nil || seed < failed.Seed {
				failed = &Failure{Seed: seed, Violations: w.Violations, Shrunk: w.Tape.Recorded()}
			}
			mu.Unlock()
		}
	})
	if failed != nil {
		s.explain(failed)
	}
	return failed, steps.Load()
}

const maxShrinkSteps = 2_000_000

func (s Simulation[P]) explain(f *Failure) {
	p := s.Threads()
	defer p.Close()
	steps := 0
	f.Shrunk = Shrink(f.Shrunk, func(try []uint32) ([]uint32, bool) {
		if steps > maxShrinkSteps {
			return nil, false
		}
		w := &World{Tape: ReplayTape(try)}
		s.RunWorld(p, w)
		steps += w.Steps
		return w.Tape.Recorded(), slices.ContainsFunc(w.Violations, func(v Violation) bool {
			return v.Invariant == f.Violations[0].Invariant && v.format == f.Violations[0].format
		})
	})
	f.Trace = *s.Replay(ReplayTape(f.Shrunk)).Trace
}

// Replay runs the world of a tape with a trace.
func (s Simulation[P]) Replay(t *Tape) *World {
	p := s.Threads()
	defer p.Close()
	w := &World{Tape: t, Trace: &[]string{}}
	s.RunWorld(p, w)
	return w
}
