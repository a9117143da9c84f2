package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/pawlhq/pawl/source"
)

// gate holds sources back while too much is in flight.
type gate struct {
	mu      sync.Mutex
	max     int
	share   int            // of max, that the open items of one pipeline may have
	open    int            // items of deliveries without an answer
	each    map[string]int // the same, by pipeline
	pending int            // objects that the engine is busy with
	closed  bool
	changed chan struct{} // closed and replaced when there may be room
}

func newGate(limit, share int) *gate {
	return &gate{max: limit, share: share, each: map[string]int{}, changed: make(chan struct{})}
}

// enter takes a delivery in, of which each item is for one of these pipelines; one
// without items takes room as well. A delivery is never split: what matters is that
// there is room at all.
func (g *gate) enter(ctx context.Context, pipelines []string, wait bool) error {
	for {
		g.mu.Lock()
		full, closed, changed := g.full(pipelines), g.closed, g.changed
		if !full && !closed {
			g.add(pipelines, 1)
		}
		g.mu.Unlock()
		switch {
		case closed:
			return source.ErrClosed
		case !full:
			return nil
		case !wait:
			return source.ErrFull
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

func (g *gate) full(pipelines []string) bool {
	return g.open+g.pending >= g.max || slices.ContainsFunc(pipelines, func(p string) bool { return g.each[p] >= g.share })
}

func (g *gate) add(pipelines []string, n int) {
	g.open += n * max(len(pipelines), 1)
	for _, p := range pipelines {
		g.each[p] += n
	}
}

func (g *gate) leave(pipelines []string) { g.update(func() { g.add(pipelines, -1) }) }

func (g *gate) setPending(n int) {
	g.mu.Lock()
	same := g.pending == n
	g.mu.Unlock()
	if !same {
		g.update(func() { g.pending = n })
	}
}

func (g *gate) close() { g.update(func() { g.closed = true }) }

func (g *gate) update(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	if g.closed || g.open+g.pending < g.max {
		close(g.changed)
		g.changed = make(chan struct{})
	}
}

func (g *gate) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open == 0
}
