package worker

import (
	"context"
	"sync"

	"github.com/pawlhq/pawl/source"
)

// gate holds sources back while too much is in flight.
type gate struct {
	mu      sync.Mutex
	max     int
	open    int // items of deliveries without an answer
	pending int // objects that the engine is busy with
	closed  bool
	changed chan struct{} // closed and replaced when there may be room
}

func newGate(limit int) *gate { return &gate{max: limit, changed: make(chan struct{})} }

// enter takes n items in. A delivery is never split: what matters is that there
// is room at all.
func (g *gate) enter(ctx context.Context, n int, wait bool) error {
	for {
		g.mu.Lock()
		full, closed, changed := g.open+g.pending >= g.max, g.closed, g.changed
		if !full && !closed {
			g.open += n
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

func (g *gate) leave(n int) { g.update(func() { g.open -= n }) }

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
