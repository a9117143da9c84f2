package worker_test

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl/worker"
)

// With EveryRaise the handler runs at every event that raises the row, where the
// object is what Have says, too; but not at a duplicate or a stale one.
func TestEveryRaise(t *testing.T) {
	inWorld(t, func(w *world) {
		ran := 0
		p := matchAll(func(context.Context, *worker.Task) error {
			ran++
			return nil
		})
		p.EveryRaise = true
		n := w.start(p)
		first, second := w.put("a", "one"), w.put("a", "two")
		n.deliver(first) // reads what the second has written
		n.deliver(second)
		n.deliver(second, first)
		if s := n.Stats(); ran != 2 || s.NothingToDo != 0 || s.Duplicate+s.Stale != 2 {
			t.Errorf("ran %d times: %+v", ran, s)
		}
	})
}
