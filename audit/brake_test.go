package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
)

func TestBrakeThreshold(t *testing.T) {
	for _, test := range []struct {
		rows, gone, tombstones int
		withheld               bool
	}{
		{50, 50, 0, false}, // all rows, but at most 100
		{100, 100, 0, false},
		{101, 101, 0, true},    // all
		{1010, 101, 0, false},  // exactly a tenth
		{1009, 101, 0, true},   // more than a tenth
		{2000, 150, 0, false},  // less than a tenth
		{500, 101, 4000, true}, // tombstones do not count as rows
	} {
		t.Run(fmt.Sprintf("%d of %d", test.gone, test.rows), func(t *testing.T) {
			w := newConvergedWorld(t, test.rows)
			var tombstones []ledger.Row
			for i := range test.tombstones {
				tombstones = append(tombstones, rowWithHave(fmt.Sprintf("removed/%04d", i), event.Removed, ledger.Identity{}))
			}
			w.settled(t, tombstones...)
			for i := range test.gone {
				w.remove(t, fmt.Sprintf("%04d", i*(test.rows/test.gone)))
			}
			w.put(t, "created", "a")
			raised, withheld := int64(test.gone), int64(0)
			if test.withheld {
				raised, withheld = 0, raised
			}
			for _, dry := range []bool{true, false} {
				got := w.audit(t, audit.Options{DryRun: dry})
				if got.LostRemovals != raised || got.Withheld != withheld || got.LostCreations != 1 || got.Removable != int64(test.gone) {
					t.Errorf("dry run %v: %+v, want %d removals and %d withheld", dry, got, raised, withheld)
				}
			}
			if n := len(w.settle(t)); n != int(raised)+1 {
				t.Errorf("%d rows were raised, want %d", n, raised+1)
			}
			if !test.withheld {
				return
			}
			if got := w.audit(t, audit.Options{AllowRemovals: true}); got.LostRemovals != int64(test.gone) || got.Withheld != 0 {
				t.Errorf("with all removals allowed: %+v", got)
			}
		})
	}
}

func (w *world) remove(t *testing.T, key string) {
	t.Helper()
	if err := w.Delete(t.Context(), event.Object{Bucket: photos, Key: key}, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func TestBrakeWithholdsOutputs(t *testing.T) {
	w := newWorld(t)
	w.places("in/")
	for i := range 101 {
		w.published(t, fmt.Sprintf("o/%03d.webp", i), "p", fmt.Sprintf("in/%03d", i))
	}
	got := w.audit(t, audit.Options{Outputs: true})
	if got.Withheld != 101 || got.NoInput != 0 || len(w.settle(t)) > 0 {
		t.Errorf("%+v", got)
	}
	got = w.audit(t, audit.Options{Outputs: true, AllowRemovals: true})
	if raised := w.settle(t); got.Withheld != 0 || got.NoInput != 101 || len(raised) != 101 {
		t.Errorf("with all removals allowed: %+v, and %d were raised", got, len(raised))
	}
}

func TestBrakeInSchedule(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l, o := newLosses(t, seed(t), 2000), &notices{}
		l.objects = membucket.New(time.Now, []string{photos})
		created := event.Object{Bucket: photos, Key: "created"}
		if _, err := l.objects.Put(t.Context(), created, bucket.Object{Body: strings.NewReader(""), Size: 0}, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		a, err := audit.New(audit.Config{
			Ledger: l.ledger, Objects: l.objects, Pipelines: []audit.Pipeline{l.pipeline}, TTL: time.Second, Logger: quiet, Observer: o,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			a.RunSchedule(ctx, audit.Schedule{Every: 24 * time.Hour, Options: audit.Options{SettleWindow: time.Hour}})
		})
		time.Sleep(50 * time.Hour)
		stop()
		wg.Wait()
		n, last := o.count(engine.RemovalsWithheld)
		if n != 3 || last.N < 1000 || last.Key.Pipeline != "p" {
			t.Errorf("the observer received %d reports of withheld removals: %+v", n, last)
		}
		delete(l.ledger.raised, ledger.RowKey{Pipeline: "p", Bucket: photos, Key: "created"})
		if len(l.ledger.raised) > 0 {
			t.Errorf("%d rows were raised, want none", len(l.ledger.raised))
		}
	})
}

type emptiedStore struct {
	bucket.Store
	left atomic.Int64
}

func (v *emptiedStore) gone() bool { return v.left.Add(-1) < 0 }

func (v *emptiedStore) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if v.gone() {
		return bucket.Info{}, bucket.ErrNotFound
	}
	return v.Store.Head(ctx, ref)
}

func (v *emptiedStore) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for info, err := range v.Store.List(ctx, name, prefix, startAfter) {
			if v.gone() || !yield(info, err) {
				return
			}
		}
	}
}

type halfEmptiedStore struct {
	bucket.Store
	lists atomic.Int64
}

func (h *halfEmptiedStore) gone(key string) bool { return h.lists.Load() > 1 && key >= "1000" }

func (h *halfEmptiedStore) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if h.gone(ref.Key) {
		return bucket.Info{}, bucket.ErrNotFound
	}
	return h.Store.Head(ctx, ref)
}

func (h *halfEmptiedStore) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	h.lists.Add(1)
	return func(yield func(bucket.Info, error) bool) {
		for info, err := range h.Store.List(ctx, name, prefix, startAfter) {
			if h.gone(info.Key) || !yield(info, err) {
				return
			}
		}
	}
}

func TestBrakeLogsRaisedAndWithheld(t *testing.T) {
	w := newConvergedWorld(t, 2000)
	for i := range 75 {
		w.remove(t, fmt.Sprintf("%04d", i))
		w.remove(t, fmt.Sprintf("%04d", 1000+i))
	}
	a, err := audit.New(audit.Config{Ledger: w.ledger, Objects: &halfEmptiedStore{Store: w.Store}, Pipelines: []audit.Pipeline{w.pipeline}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Run(t.Context(), audit.Options{SettleWindow: time.Hour, Ranges: 1})
	if total := r.Total(); err != nil || total.LostRemovals != 75 || total.Withheld != 1000 {
		t.Errorf("%+v, %v: want 75 removals raised and 1000 withheld", total, err)
	}
	var log bytes.Buffer
	r.Log(slog.New(slog.NewTextHandler(&log, nil)))
	if !strings.Contains(log.String(), "scheduled 75 removals and withheld 1000") {
		t.Errorf("%s\nwant both numbers", &log)
	}
}

// The test empties the bucket before or during an audit, or never, and kills the audit
// repeatedly. If the first pass counts too many removals, the audit must raise none of them.
func TestBrakeInSimulations(t *testing.T) {
	const most = 1000 // until every kind was seen
	rng := seed(t)
	seen := map[string]int{}
	kinds := []string{"withheld by the first pass", "withheld by the second pass", "raised", "resumed in the first pass", "resumed in the second pass"}
	missing := func(what string) bool { return seen[what] == 0 }
	for n := 0; n < minHistories || n < most && slices.ContainsFunc(kinds, missing); n++ {
		virtualtime.Test(t, func(t *testing.T) { simulateBrake(t, rng, seen) })
	}
	t.Log(seen)
	for _, what := range kinds {
		if missing(what) {
			t.Errorf("no simulation has removals that are %s", what)
		}
	}
}

func simulateBrake(t *testing.T, rng *rand.Rand, seen map[string]int) {
	t.Helper()
	n := 200 + rng.IntN(4000)
	l := newLosses(t, rng, n)
	requests := [...]int64{1 << 40, 0, rng.Int64N(3 * int64(n)), int64(n) + rng.Int64N(int64(n))/2}[rng.IntN(4)]
	store := &emptiedStore{Store: l.objects}
	store.left.Store(requests)
	limit, kills := int64(0), rng.IntN(4)
	for row, err := range l.ledger.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if limit++; row.Have.Kind != event.Created {
			t.Fatalf("%s is not the row of a created object", row.Key)
		}
	}
	limit = max(100, limit/10)
	killed := false    // in the second pass
	before := int64(0) // by earlier audits: a kill can follow the last checkpoint
	var report audit.Report
	for err := errKilled; err != nil; kills-- {
		ctx, kill := context.WithCancel(t.Context())
		m := &mortalStore{registers: l.ledger, kill: kill, n: 1 << 30}
		if kills > 0 {
			m.n = 5 + rng.IntN(40)
		}
		a, failed := audit.New(audit.Config{Ledger: m, Objects: store, Pipelines: []audit.Pipeline{l.pipeline}, TTL: time.Second, Logger: quiet})
		if failed != nil {
			t.Fatal(failed)
		}
		was, raised := report.Started, l.removals(t)
		report, err = a.Run(ctx, audit.Options{SettleWindow: time.Hour, Ranges: 1 + rng.IntN(4)})
		kill()
		if !report.Started.Equal(was) {
			before = raised // the audit started over
		}
		second := l.removals(t) > 0
		killed = killed || err != nil && second
		if err != nil && second {
			seen["resumed in the second pass"]++
		} else if err != nil && report.Total().Listed > 0 {
			seen["resumed in the first pass"]++
		}
	}
	total, removals := report.Total(), l.removals(t)
	switch {
	case total.Removable > limit && (removals > before || total.Withheld != total.Removable):
		t.Errorf("%d removals were raised, want none, limit %d: %+v", removals, limit, total)
	case !killed && removals > limit:
		t.Errorf("%d removals were raised, want at most %d: %+v", removals, limit, total)
	case requests == 1<<40 && total.Withheld == 0:
		l.check(t)
	}
	switch {
	case total.Removable > limit:
		seen["withheld by the first pass"]++
	case total.Withheld > 0:
		seen["withheld by the second pass"]++
	case removals > 0:
		seen["raised"]++
	}
}

func (l *losses) removals(t *testing.T) (n int64) {
	t.Helper()
	for row, err := range l.ledger.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Want.Kind == event.Removed {
			n++
		}
	}
	return n
}

var quiet = slog.New(slog.DiscardHandler)
