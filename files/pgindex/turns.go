package pgindex

import (
	"context"
	"sync"
)

// perEntity is how many changes of one entity have a connection at a time. One waits
// for the other's lock mostly, and the connections are for all entities.
const perEntity = 2

// turns lets in only so many changes of each entity.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	slots chan struct{}
	users int // that have a slot, or wait for one
}

// take waits for a slot; end gives it back.
func (t *turns) take(ctx context.Context, entity string) (end func(), err error) {
	t.mu.Lock()
	mine := t.of[entity]
	if mine == nil {
		if t.of == nil {
			t.of = map[string]*turn{}
		}
		mine = &turn{slots: make(chan struct{}, perEntity)}
		t.of[entity] = mine
	}
	mine.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.users--; mine.users == 0 {
			delete(t.of, entity)
		}
	}
	select {
	case mine.slots <- struct{}{}:
		return func() { <-mine.slots; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
