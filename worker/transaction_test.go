package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/worker"
)

// tx is not safe for concurrent changes between Lock and Put.
type tx struct{ store.Store }

func (x tx) Lock(ctx context.Context, k store.Key) (*store.Record, error) {
	found, err := x.Load(ctx, []store.Key{k})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func (x tx) Put(ctx context.Context, r store.Record) error {
	was, err := x.Lock(ctx, r.Key)
	if err != nil {
		return err
	}
	out, err := x.Swap(ctx, []store.Change{{Key: r.Key, Expect: was.Nonce, Next: &r}})
	if err == nil && !out[0].Applied {
		err = errors.New("the record changed under its lock")
	}
	return err
}

func (w *world) commit(t *worker.Task) error {
	return ledger.Complete(context.Background(), tx{w.rows.Records()}, t)
}

func transactional(handle worker.HandlerFunc) *worker.Pipeline {
	p := matchAll(handle)
	p.Output, p.Transactional = nil, true
	return p
}

func TestLostCommitAnswerIsFoundInTheRow(t *testing.T) {
	lost := errors.New("the answer was lost")
	for _, tc := range []struct {
		name   string
		commit bool
		wait   time.Duration // longer than the renewal interval
		says   error
		dead   bool
	}{
		{name: "committed", commit: true},
		{name: "answer lost", commit: true, says: lost},
		{name: "renewal overtaken", commit: true, wait: ttl * 2 / 3},
		{name: "renewal overtaken, and the answer lost", commit: true, wait: ttl * 2 / 3, says: lost},
		{name: "handler without a commit", dead: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				calls, cause := 0, error(nil)
				n := w.start(transactional(func(ctx context.Context, task *worker.Task) error {
					calls++
					if tc.commit {
						if err := w.commit(task); err != nil {
							t.Error(err)
						}
					}
					select {
					case <-ctx.Done():
						cause = context.Cause(ctx)
					case <-time.After(tc.wait):
					}
					return tc.says
				}))
				n.deliver(w.put("a", "one"))
				w.pass(2 * ttl)
				row, s := w.row("a"), n.Stats()
				if row.Dead != tc.dead || row.Settled() == tc.dead || row.Doubt || calls != 1 || cause != nil {
					t.Errorf("%d calls, cancelled: %v; dead %v: %s", calls, cause, row.Dead, row.LastError)
				}
				if s.Lost != 0 || s.Completed == 1 == tc.dead {
					t.Errorf("%d completed, %d lost", s.Completed, s.Lost)
				}
			})
		})
	}
}

// Nothing happens without a commit, so Have is trusted in spite of doubt.
func TestTransactionLeavesNoDoubt(t *testing.T) {
	inWorld(t, func(w *world) {
		calls := 0
		n := w.start(transactional(func(_ context.Context, task *worker.Task) error {
			calls++
			return w.commit(task)
		}))
		e := w.put("a", "one")
		n.deliver(e)
		w.pass(time.Second)
		row := w.row("a")
		next := row
		next.Doubt, next.Nonce = true, ledger.Nonce{1}
		next.Want.Generation++
		if out, err := w.rows.Swap(t.Context(), []ledger.Change{{Key: row.RowKey, Expect: row.Nonce, Row: &next}}); err != nil || !out[0].Applied {
			t.Fatal(out, err)
		}
		w.pass(time.Minute)
		if row := w.row("a"); calls != 1 || !row.Settled() {
			t.Errorf("%d calls, settled %v", calls, row.Settled())
		}
	})
}

func TestCompletionNeedsATransactionalPipeline(t *testing.T) {
	inWorld(t, func(w *world) {
		p := matchAll(func(_ context.Context, task *worker.Task) error { return w.commit(task) })
		p.Output = nil
		w.start(p).deliver(w.put("a", "one"))
		w.pass(time.Second)
		if row := w.row("a"); !row.Dead {
			t.Errorf("not dead: %+v", row)
		}
	})
}
