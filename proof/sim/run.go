package sim

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
)

// Options say which worlds to play.
type Options struct {
	First     uint64 // seed; the others follow it
	Histories uint64
	// Threads is how many worlds are played at a time; 0 is one for each core.
	Threads int
	// KeepGoing counts violations instead of ending at the first and
	// explaining it.
	KeepGoing bool
	// Progress, when set, is told now and then how far it is.
	Progress func(played uint64)
}

// Report is what became of the worlds.
type Report struct {
	First     uint64        `json:"first_seed"`
	Histories uint64        `json:"histories"` // played
	Steps     uint64        `json:"steps"`
	Elapsed   time.Duration `json:"-"`
	// Setbacks counts older results that replaced newer ones for the moment
	// that a verification healed.
	Setbacks uint64 `json:"setbacks"`
	// Dynamo counts the worlds whose ledger answers like a table of DynamoDB.
	Dynamo uint64 `json:"-"`
	// Injected counts the faults at each step.
	Injected [steps][faults]uint64 `json:"-"`
	// Violated counts the worlds in which each invariant did not hold.
	Violated map[Invariant]uint64 `json:"violated,omitempty"`
	// Failure is the world of the smallest seed in which one did not hold.
	Failure *Failure `json:"failure,omitzero"`
}

// Failure is a world in which an invariant did not hold.
type Failure struct {
	Seed       uint64      `json:"seed"`
	Violations []Violation `json:"violations"`
	// Tape is the shortest found that leads to a violation of the same
	// invariant, for Replay, and Story is what happens in its world.
	Tape    string   `json:"tape"`
	Choices int      `json:"choices"`
	Trace   []string `json:"story"`
}

// Missed lists the faults that were met at no step where they can happen.
func (r *Report) Missed() (missed []string) {
	for s := range steps {
		for f := simkit.CrashBefore; f < faults; f++ {
			if s.Has(f) && r.Injected[s][f] == 0 {
				missed = append(missed, fmt.Sprintf("%s: %s", s, f))
			}
		}
	}
	return missed
}

// block is how many worlds a goroutine counts before it adds them to the report.
const block = 64

// Run plays worlds until all are played, one violates an invariant, or ctx ends.
func Run(ctx context.Context, o Options) *Report {
	// Worlds are small and short-lived: of a few megabytes that live, and some
	// hundred that do not, collecting often only takes time.
	defer debug.SetGCPercent(debug.SetGCPercent(3200))
	r := &runner{options: o, report: &Report{First: o.First, Violated: map[Invariant]uint64{}}}
	start := time.Now()
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	simkit.Each(ctx, o.First, o.Histories, o.Threads, r.runSeeds)
	r.report.Elapsed = time.Since(start)
	if f := r.report.Failure; f != nil && !o.KeepGoing {
		f.explain()
	}
	return r.report
}

type runner struct {
	options Options
	stop    context.CancelFunc

	mu     sync.Mutex
	report *Report
}

func (r *runner) runSeeds(seeds iter.Seq[uint64]) {
	pool := newThreads()
	defer pool.Close()
	part := Report{Violated: map[Invariant]uint64{}}
	for seed := range seeds {
		part.count(seed, runSeed(pool, seed, nil))
		if part.Histories == block || part.Failure != nil {
			r.add(&part)
			part = Report{Violated: map[Invariant]uint64{}}
		}
	}
	r.add(&part)
}

func (r *Report) count(seed uint64, h result) {
	r.Histories++
	r.Steps += uint64(h.steps)
	r.Setbacks += uint64(h.setbacks)
	if h.dynamo {
		r.Dynamo++
	}
	for s := range h.injected {
		for f, n := range h.injected[s] {
			r.Injected[s][f] += uint64(n)
		}
	}
	for _, v := range h.violations {
		r.Violated[v.Invariant]++
	}
	if len(h.violations) > 0 && r.Failure == nil {
		r.Failure = &Failure{Seed: seed, Violations: h.violations}
	}
}

func (r *runner) add(part *Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.report
	all.Histories += part.Histories
	all.Steps += part.Steps
	all.Setbacks += part.Setbacks
	all.Dynamo += part.Dynamo
	for s := range all.Injected {
		for f := range all.Injected[s] {
			all.Injected[s][f] += part.Injected[s][f]
		}
	}
	for i, n := range part.Violated {
		all.Violated[i] += n
	}
	if f := part.Failure; f != nil && (all.Failure == nil || f.Seed < all.Failure.Seed) {
		all.Failure = f
	}
	if all.Failure != nil && !r.options.KeepGoing {
		r.stop()
	}
	if r.options.Progress != nil {
		r.options.Progress(all.Histories)
	}
}

// result is what one world came to.
type result struct {
	steps, setbacks int
	dynamo          bool
	recorded        []uint32
	violations      []Violation
	injected        *[steps][faults]int
	rows            []ledger.Row
}

// violates reports that an invariant did not hold.
func (h *result) violates(i Invariant) bool {
	return slices.ContainsFunc(h.violations, func(v Violation) bool { return v.Invariant == i })
}

// runWorld lets one world happen.
func runWorld(pool *threadPool, tp *simkit.Tape, store ledger.Store, trace *[]string) result {
	w := newWorld(pool, tp, store)
	w.Trace = trace
	w.run()
	h := result{steps: w.Steps, setbacks: w.setbacks, dynamo: w.plan.dynamo, recorded: tp.Recorded(), violations: w.violations, injected: &w.injected}
	for _, t := range w.oracles {
		if t.exists {
			h.rows = append(h.rows, t.row)
		}
	}
	return h
}

// runSeed plays the world of a seed.
func runSeed(pool *threadPool, seed uint64, trace *[]string) result {
	return runWorld(pool, simkit.NewTape(seed), &refStore{}, trace)
}
