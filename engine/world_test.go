package engine_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

var start = time.UnixMilli(1000).UTC()

func policy() ledger.Policy {
	return ledger.Policy{
		TTL: 30 * time.Second, Skew: 5 * time.Second, Attempts: 3,
		Base: time.Second, Max: 10 * time.Second, LateWriteWindow: time.Minute, RowRetention: time.Hour,
	}
}

// world has a real ledger, a clock that tests advance, and workers that act only on command.
type world struct {
	t       *testing.T
	now     time.Time
	store   *ledger.Rows
	workers map[string]*worker
	// proposed has the requested rows, to print the changes of the next write.
	proposed map[ledger.Nonce]ledger.Row
	nonces   *rand.Rand
}

// Sweeps return the oldest rows, not a random run.
func newRows() *ledger.Rows {
	rows := ledger.NewRows(memory.New())
	rows.IntN = func(int) int { return 0 }
	return rows
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, now: start, store: newRows(), workers: map[string]*worker{},
		proposed: map[ledger.Nonce]ledger.Row{}, nonces: rand.New(rand.NewPCG(0, 1)),
	}
}

type worker struct {
	*engine.Engine
	world  *world
	skew   time.Duration
	swaps  []*swap
	sweeps []engine.Sweep
	loads  []engine.Loaded // rows as of the request
	cfg    engine.Config
	tasks  map[ledger.RowKey]*ledger.Claim // the last one of each object
}

type swap struct {
	engine.Swap
	landed []ledger.Outcome // nil: not committed yet
}

func (wd *world) newWorker(cfg engine.Config, seed uint64) *worker {
	cfg.Rand = rand.New(rand.NewPCG(seed, 0))
	w := &worker{Engine: engine.New(cfg), world: wd, cfg: cfg, tasks: map[ledger.RowKey]*ledger.Claim{}}
	wd.workers[cfg.Owner] = w
	return w
}

func (w *worker) clock() time.Time { return w.world.now.Add(w.skew) }

func (w *worker) step(in ...engine.Input) []engine.Action {
	out := w.Step(w.clock(), in...)
	for _, a := range out {
		switch a := a.(type) {
		case engine.Swap:
			w.swaps = append(w.swaps, &swap{Swap: a})
			w.checkSwap(&a)
			for _, c := range a.Changes {
				w.world.proposed[c.Row.Nonce] = *c.Row
			}
		case engine.Start:
			w.tasks[a.Claim.Key] = &a.Claim
		case engine.Sweep:
			w.sweeps = append(w.sweeps, a)
		case engine.Load:
			if len(w.loads) > 0 || len(a.Keys) == 0 || len(a.Keys) > w.cfg.Batch {
				w.world.t.Errorf("a load of %d rows while %d loads are pending", len(a.Keys), len(w.loads))
			}
			w.loads = append(w.loads, engine.Loaded{Keys: a.Keys, Rows: w.world.rows(a.Keys)})
		}
	}
	return out
}

func (w *worker) checkSwap(s *engine.Swap) {
	if len(s.Changes) == 0 || len(s.Changes) > w.cfg.Batch || len(w.swaps) > w.cfg.Swaps {
		w.world.t.Errorf("batch %d of %d changes, with %d batches out", s.Batch, len(s.Changes), len(w.swaps))
	}
	out := map[ledger.RowKey]bool{}
	for _, batch := range w.swaps {
		for _, c := range batch.Changes {
			if out[c.Key] {
				w.world.t.Errorf("two writes of %s are pending", c.Key)
			}
			out[c.Key] = true
		}
	}
}

func (w *worker) takeSwaps() []*swap {
	s := w.swaps
	w.swaps = nil
	return s
}

func (w *worker) takeSweeps() []engine.Sweep {
	s := w.sweeps
	w.sweeps = nil
	return s
}

func (w *worker) takeLoads() []engine.Loaded {
	s := w.loads
	w.loads = nil
	return s
}

func (w *worker) land(s *swap) { s.landed = w.world.swap(s.Changes) }

type unsent struct {
	ledger.Store
	lost bool
}

func (u *unsent) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	if !u.lost {
		u.lost = true
		return nil, store.ErrUnclear
	}
	return u.Store.Swap(ctx, changes)
}

func (w *worker) resolve(s *swap) []ledger.Outcome {
	faulty := &unsent{Store: w.world.store}
	out, err := ledger.New(faulty).Swap(w.world.t.Context(), s.Changes)
	if err != nil {
		w.world.t.Fatal(err)
	}
	return out
}

func (wd *world) swap(changes []ledger.Change) []ledger.Outcome {
	out, err := wd.store.Swap(wd.t.Context(), changes)
	if err != nil {
		wd.t.Fatal(err)
	}
	return out
}

func (wd *world) load(key ledger.RowKey) ledger.Row {
	rows := wd.rows([]ledger.RowKey{key})
	if len(rows) == 0 {
		return ledger.Row{RowKey: key}
	}
	return rows[0]
}

func (wd *world) rows(keys []ledger.RowKey) []ledger.Row {
	rows, err := wd.store.Load(wd.t.Context(), keys)
	if err != nil {
		wd.t.Fatal(err)
	}
	return rows
}

func (wd *world) due(a engine.Sweep) []ledger.Row {
	rows, err := wd.store.Due(wd.t.Context(), a.Pipeline, a.Before, a.Limit)
	if err != nil {
		wd.t.Fatal(err)
	}
	return rows
}

func (wd *world) write(row ledger.Row, expect ledger.Nonce) {
	for i := range row.Nonce {
		row.Nonce[i] = byte(wd.nonces.Uint32())
	}
	wd.proposed[row.Nonce] = row
	if out := wd.swap([]ledger.Change{{Key: row.RowKey, Expect: expect, Row: &row}}); !out[0].Applied {
		wd.t.Fatalf("write of %s refused", row.RowKey)
	}
}

func unanswered(changes int, err error) []ledger.Outcome {
	out := make([]ledger.Outcome, changes)
	for i := range out {
		out[i].Err = err
	}
	return out
}
