package world

import (
	"context"
	"iter"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/store"
)

// process runs the service on a node until it crashes. One of its threads sends changes for the
// others.
type process struct {
	w     *World
	index *files.Index
	dead  bool
}

func newProcess(w *World) *process {
	p := &process{w: w}
	p.index = files.NewIndex(recordStore{p})
	p.index.Wait = wait
	return p
}

type recordStore struct{ *process }

var _ store.Store = recordStore{}

const fileSpace = "file"

func (r recordStore) Traits() store.Traits { return r.w.records.Traits() }

// Apply implements [store.Store]. It checks the rows after every change.
func (r recordStore) Apply(ctx context.Context, changes []store.Change) (out []store.Outcome, err error) {
	t := threadOf(ctx)
	if !t.faultless && !t.dead() && r.w.Tape.Chance(r.w.faultRate/4) {
		t.sleep(r.w.latency())
		return nil, store.ErrThrottled
	}
	err = t.request(func() (err error) {
		out, err = r.w.apply(changes)
		return err
	})
	return out, err
}

// Swap is not used.
func (r recordStore) Swap(context.Context, []store.Change) ([]store.Outcome, error) { return nil, nil }

func (r recordStore) Load(ctx context.Context, keys []store.Key) (found []store.Record, err error) {
	err = threadOf(ctx).request(func() (err error) {
		found, err = r.w.records.Load(ctx, keys)
		return err
	})
	return found, err
}

func (r recordStore) Due(ctx context.Context, in store.DueRange) (found []store.Record, err error) {
	err = threadOf(ctx).request(func() (err error) {
		found, err = r.w.records.Due(ctx, in)
		return err
	})
	return found, err
}

// Scan implements [store.Store]. It returns a snapshot.
func (r recordStore) Scan(ctx context.Context, in store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		var all []store.Record
		err := threadOf(ctx).request(func() error {
			all = r.w.scan(in)
			return nil
		})
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for i := range all {
			if !yield(all[i], nil) {
				return
			}
		}
	}
}

func (r recordStore) Close() error { return nil }

func (w *World) scan(in store.Range) (all []store.Record) {
	for found, err := range w.records.Scan(context.Background(), in) {
		if err != nil {
			panic(err) // the store is in memory
		}
		all = append(all, found)
	}
	return all
}

// The client may disconnect during wait.
func wait(ctx context.Context, wake <-chan struct{}, _ time.Duration) error {
	t := threadOf(ctx)
	w := t.w
	switch {
	case t.dead():
	case wake == nil:
		t.clientGone = !t.faultless && w.Tape.Chance(w.faultRate)
		t.sleep(w.Tape.UpTo(time.Second))
	case len(wake) == 0:
		t.wake, t.clientGone = wake, false
		w.waiting = append(w.waiting, t)
		if !t.faultless && w.Tape.Chance(w.faultRate) {
			w.After(w.Tape.UpTo(time.Minute), func() {
				if t.wake == wake {
					t.clientGone = true
				}
			})
		}
		t.Yield()
		t.wake = nil
	}
	switch {
	case t.dead():
		return errDead
	case t.clientGone:
		t.clientGone = false
		return errNoAnswer
	case wake != nil:
		<-wake
	}
	return nil
}

func (w *World) wakeUp() {
	waiting := w.waiting[:0]
	for _, t := range w.waiting {
		if len(t.wake) == 0 && !t.clientGone && !t.dead() {
			waiting = append(waiting, t)
			continue
		}
		w.After(0, t.resume)
	}
	w.waiting = waiting
}
