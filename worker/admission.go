package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/pawlhq/pawl/source"
)

type admission struct {
	mu      sync.Mutex
	max     int
	share   int            // maximum of one pipeline's open items
	open    int            // items of unanswered deliveries
	each    map[string]int // by pipeline
	pending int            // active objects of the engine
	closed  bool
	changed chan struct{} // closed and replaced when there may be room
}

func newAdmission(limit, share int) *admission {
	return &admission{max: limit, share: share, each: map[string]int{}, changed: make(chan struct{})}
}

// A delivery without items counts as one item. A delivery larger than the free room is admitted
// whole, if there is any room.
func (a *admission) enter(ctx context.Context, pipelines []string, wait bool) error {
	for {
		a.mu.Lock()
		full, closed, changed := a.full(pipelines), a.closed, a.changed
		if !full && !closed {
			a.add(pipelines, 1)
		}
		a.mu.Unlock()
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

func (a *admission) full(pipelines []string) bool {
	return a.open+a.pending >= a.max || slices.ContainsFunc(pipelines, func(p string) bool { return a.each[p] >= a.share })
}

func (a *admission) add(pipelines []string, n int) {
	a.open += n * max(len(pipelines), 1)
	for _, p := range pipelines {
		a.each[p] += n
	}
}

func (a *admission) leave(pipelines []string) { a.update(func() { a.add(pipelines, -1) }) }

// setPending sets the number of active objects, and returns the total in progress.
func (a *admission) setPending(n int) int {
	a.mu.Lock()
	same, open := a.pending == n, a.open
	a.mu.Unlock()
	if !same {
		a.update(func() { a.pending = n })
	}
	return open + n
}

func (a *admission) close() { a.update(func() { a.closed = true }) }

func (a *admission) update(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	if a.closed || a.open+a.pending < a.max {
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

func (a *admission) empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open == 0
}
