package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/sqlite"
)

const unnotifiedObjects = 5000

// One audit finds all changes, and the next one sends no HEAD and writes nothing. The brake withholds
// removals until they are allowed.
func TestAuditLost(t *testing.T) {
	t.Parallel()
	servertest.Each(t, servertest.Options{}, func(t *testing.T, s *servertest.Server) {
		t.Parallel()
		w := newUnnotifiedBucket(t, s)
		w.change(t, func(i int) string { return fmt.Sprintf("content of %d", i) })
		w.audit(t, audit.Counts{Listed: unnotifiedObjects, Inspected: unnotifiedObjects, LostCreations: unnotifiedObjects, Repaired: unnotifiedObjects})
		w.waitUntilSettled(t)
		w.change(t, func(i int) string {
			switch i % 5 {
			case 0:
				return ""
			case 1, 2:
				return fmt.Sprintf("content of %d as it is now", i)
			}
			return w.want[unnotifiedKey(i)]
		})
		const over, gone = unnotifiedObjects * 2 / 5, unnotifiedObjects / 5
		braked := audit.Counts{
			Listed: unnotifiedObjects - gone, Rows: unnotifiedObjects, Inspected: over, LostOverwrites: over, Repaired: over, Created: unnotifiedObjects, Removable: gone, Withheld: gone,
		}
		w.audit(t, braked)
		w.audit(t, audit.Counts{
			Listed: unnotifiedObjects - gone, Rows: unnotifiedObjects, Inspected: gone, LostRemovals: gone, Repaired: gone, Created: unnotifiedObjects, Removable: gone,
		}, func(o *pawl.AuditOptions) { o.AllowRemovals = true })
		w.waitUntilSettled(t)
		before := w.nonces(t)
		w.audit(t, audit.Counts{Listed: unnotifiedObjects - gone, Rows: unnotifiedObjects, Created: unnotifiedObjects - gone})
		if !maps.Equal(before, w.nonces(t)) {
			t.Error("an audit of settled rows writes")
		}
	})
}

type unnotifiedBucket struct {
	store   bucket.Store
	ledger  ledger.Store
	pawl    *pawl.Pawl
	want    map[string]string
	changes map[string]int

	mu       sync.Mutex
	effects  map[string]int
	lastSize map[string]int64 // size at the last effect; -1 for a removal
}

func newUnnotifiedBucket(t *testing.T, s *servertest.Server) *unnotifiedBucket {
	t.Helper()
	w := &unnotifiedBucket{
		store: newTestBuckets(t, s).store, want: map[string]string{}, changes: map[string]int{}, effects: map[string]int{}, lastSize: map[string]int64{},
	}
	w.pawl, w.ledger = startEffects(t, filepath.Join(t.TempDir(), "ledger.db"), w.store, w.recordEffect)
	return w
}

func startEffects(t *testing.T, path string, objects bucket.Store, effect pawl.HandlerFunc, sources ...pawl.Source) (*pawl.Pawl, ledger.Store) {
	t.Helper()
	records, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	led := ledger.NewRows(records)
	p, err := pawl.New(pawl.Config{
		Ledger: records, Objects: objects, Sources: sources, SweepInterval: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Pipelines: []pawl.Pipeline{{Name: "effects", Match: pawl.Match{Bucket: inputs}, Handler: effect}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := led.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, led
}

func (w *unnotifiedBucket) recordEffect(_ context.Context, task *pawl.Task) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := task.Object.Key
	w.effects[key]++
	if w.lastSize[key] = task.Info.Size; task.Kind == event.Removed {
		w.lastSize[key] = -1
	}
	return nil
}

func unnotifiedKey(i int) string { return fmt.Sprintf("day-%02d/%04d.txt", i%7, i) }

func (w *unnotifiedBucket) change(t *testing.T, content func(i int) string) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(8)
	for i := range unnotifiedObjects {
		key, next := unnotifiedKey(i), content(i)
		ref := event.Object{Bucket: inputs, Key: key}
		if next == w.want[key] {
			continue
		}
		w.changes[key]++
		if next == "" {
			delete(w.want, key)
			g.Go(func() error { return w.store.Delete(t.Context(), ref, bucket.Condition{}) })
			continue
		}
		w.want[key] = next
		g.Go(func() error {
			_, err := w.store.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader(next), Size: int64(len(next))}, bucket.Condition{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (w *unnotifiedBucket) audit(t *testing.T, want audit.Counts, options ...func(*pawl.AuditOptions)) {
	t.Helper()
	began := time.Now()
	// The store's clock has a resolution of one second, so newer changes are within the settle
	// window.
	eventually(t, time.Minute, func(context.Context) ([]string, error) {
		if time.Since(began) < 1100*time.Millisecond {
			return []string{"the store's clock has not advanced"}, nil
		}
		return nil, nil
	})
	o := pawl.AuditOptions{SettleWindow: time.Nanosecond}
	for _, set := range options {
		set(&o)
	}
	report, err := w.pawl.Audit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got := report.Total()
	t.Logf("%d objects and %d rows in %v, %d HEAD requests", got.Listed, got.Rows, report.Ended.Sub(report.Started), got.Inspected)
	if got != want {
		t.Errorf("found %+v, want %+v", got, want)
	}
}

func (w *unnotifiedBucket) waitUntilSettled(t *testing.T) {
	t.Helper()
	eventually(t, 5*time.Minute, func(ctx context.Context) (open []string, err error) {
		if open := w.pendingChanges(); open > 0 {
			return []string{fmt.Sprintf("%d changes have had no effect", open)}, nil
		}
		for row, err := range w.ledger.Scan(ctx, ledger.Range{}) {
			if err != nil {
				return nil, err
			}
			if !row.Settled() {
				open = append(open, fmt.Sprint(row.Key, " is ", row.State(time.Now())))
			}
		}
		return open, nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, made := range w.changes {
		size := int64(-1)
		if content, ok := w.want[key]; ok {
			size = int64(len(content))
		}
		if w.effects[key] != made || w.lastSize[key] != size {
			t.Errorf("%s: %d effects of %d changes, the last of %d bytes, want %d", key, w.effects[key], made, w.lastSize[key], size)
		}
	}
}

func (w *unnotifiedBucket) pendingChanges() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, made := range w.changes {
		n += max(made-w.effects[key], 0)
	}
	return n
}

func (w *unnotifiedBucket) nonces(t *testing.T) map[ledger.RowKey]ledger.Nonce {
	t.Helper()
	all := map[ledger.RowKey]ledger.Nonce{}
	for row, err := range w.ledger.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[row.RowKey] = row.Nonce
	}
	return all
}
