package worker_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/worker"
)

// stuckRow throttles every change of one row.
type stuckRow struct {
	store.Store
	key   ledger.RowKey
	stuck atomic.Bool
}

func (s *stuckRow) Traits() store.Traits {
	t := s.Store.Traits()
	t.Partial = true
	return t
}

func (s *stuckRow) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	throttled := func(c store.Change) bool {
		key, err := ledger.ParseKey(c.Key)
		return s.stuck.Load() && err == nil && key == s.key
	}
	answers, err := s.Store.Swap(ctx, slices.DeleteFunc(slices.Clone(changes), throttled))
	for i := range changes {
		if throttled(changes[i]) {
			answers = slices.Insert(answers, i, store.Outcome{Err: store.ErrThrottled})
		}
	}
	return answers, err
}

func TestThrottledRowDelaysNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		rows := &stuckRow{Store: w.rows.Records(), key: rowKey("a")}
		rows.stuck.Store(true)
		n := w.start(toOut(upper), func(c *worker.Config) { c.Ledger = ledger.NewRows(rows) })
		both := n.deliver(w.put("a", "one"), w.put("b", "two"))
		w.pass(time.Second)
		w.wantSettled("b")
		w.wantOutput("b", "TWO")
		rows.stuck.Store(false)
		w.pass(time.Minute)
		both.wantAck(w)
		w.wantSettled("a")
	})
}
