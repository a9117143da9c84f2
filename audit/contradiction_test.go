package audit_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func TestListedOnlyObjects(t *testing.T) {
	w := newWorld(t)
	w.settled(t, rowWithHave("b", event.Created, w.put(t, "b", "before")))
	w.put(t, "a", "a")
	w.put(t, "b", "after that")
	a, err := audit.New(audit.Config{
		Ledger: w.ledger, Objects: headlessStore{w.Store}, Pipelines: []audit.Pipeline{w.pipeline}, Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Run(t.Context(), audit.Options{SettleWindow: time.Hour, Ranges: 1})
	want := audit.Counts{Listed: 2, Rows: 1, Created: 1, Inspected: 4, Removable: 1, Contradicted: 2}
	if got := r.Total(); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	example := audit.Example{What: "listed, but HEAD returns not found", Pipeline: "p", Object: "s3://photos/a"}
	if len(r.Examples) != 2 || r.Examples[0] != example {
		t.Errorf("examples: %+v, want %+v first", r.Examples, example)
	}
	if raised := w.settle(t); raised != nil {
		t.Errorf("the audit raised %q", raised)
	}
}

type headlessStore struct{ bucket.Store }

func (headlessStore) Head(context.Context, event.Object) (bucket.Info, error) {
	return bucket.Info{}, bucket.ErrNotFound
}

func TestRemovedMeanwhileIsNoContradiction(t *testing.T) {
	w := newWorld(t)
	w.settled(t, rowWithHave("a", event.Created, ledger.Identity{ETag: "x"}))
	w.put(t, "a", "a")
	gone := &removingStore{world: w, t: t}
	got := w.audit(t, audit.Options{Listing: gone, ListingName: "removing", Ranges: 1})
	want := audit.Counts{Listed: 1, Rows: 1, Created: 1, Inspected: 3, Removable: 1, LostRemovals: 1, Repaired: 1}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

type removingStore struct {
	*world
	t *testing.T
}

func (r *removingStore) List(ctx context.Context, name, prefix, after string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for info, err := range r.Store.List(ctx, name, prefix, after) {
			if !yield(info, err) {
				return
			}
			r.remove(r.t, info.Key)
		}
	}
}
