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

// Options are the parameters of a run.
type Options struct {
	First     uint64 // the run uses consecutive seeds
	Histories uint64
	// Threads is the number of concurrent worlds; 0 means one per core.
	Threads int
	// KeepGoing counts all violations. Otherwise the first one ends the run.
	KeepGoing bool
	// Progress gets the number of finished worlds. It may be nil.
	Progress func(played uint64)
}

// Report is the result of a run.
type Report struct {
	First     uint64        `json:"first_seed"`
	Histories uint64        `json:"histories"` // finished worlds
	Steps     uint64        `json:"steps"`
	Elapsed   time.Duration `json:"-"`
	// Setbacks counts older results that replaced newer ones until a verification repaired them.
	Setbacks uint64 `json:"setbacks"`
	// Dynamo counts the worlds with a DynamoDB ledger.
	Dynamo uint64 `json:"-"`
	// Injected counts the faults.
	Injected [steps][faults]uint64 `json:"-"`
	// Violated counts the worlds by invariant.
	Violated map[Invariant]uint64 `json:"violated,omitempty"`
	// Failure is the failed world with the smallest seed, or nil.
	Failure *Failure `json:"failure,omitzero"`
}

// Failure is a world that violated an invariant.
type Failure struct {
	Seed       uint64      `json:"seed"`
	Violations []Violation `json:"violations"`
	// Tape is the shortest tape that was found for the violation. Trace lists its events.
	Tape    string   `json:"tape"`
	Choices int      `json:"choices"`
	Trace   []string `json:"story"`
}

// Missed lists possible faults that never occurred at a step.
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

// block is the number of worlds between two updates of the report.
const block = 64

// Run runs worlds until all have run, one violates an invariant, or ctx ends.
func Run(ctx context.Context, o Options) *Report {
	// Frequent collections of the garbage of small worlds would only cost time.
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

type result struct {
	steps, setbacks int
	dynamo          bool
	recorded        []uint32
	violations      []Violation
	injected        *[steps][faults]int
	rows            []ledger.Row
}

func (h *result) violates(i Invariant) bool {
	return slices.ContainsFunc(h.violations, func(v Violation) bool { return v.Invariant == i })
}

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

func runSeed(pool *threadPool, seed uint64, trace *[]string) result {
	return runWorld(pool, simkit.NewTape(seed), &refStore{}, trace)
}
