package audit_test

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/sqlite"
	"github.com/pawlhq/pawl/worker"
)

type world struct {
	*membucket.Store
	ledger   ledger.Store
	at       time.Time
	pipeline audit.Pipeline
}

const photos = "photos"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{at: time.Now().Add(-24 * time.Hour)}
	w.Store = membucket.New(func() time.Time { return w.at }, []string{photos, "out"}, membucket.WithVersioned("versions"))
	records, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := ledger.NewRows(records)
	t.Cleanup(func() { _ = s.Close() })
	w.ledger = s
	w.pipeline = audit.Pipeline{Name: "p", Bucket: photos, Match: func(o event.Object) bool { return !strings.HasSuffix(o.Key, ".tmp") }}
	return w
}

func (w *world) auditor(t *testing.T) *audit.Auditor {
	t.Helper()
	a, err := audit.New(audit.Config{
		Ledger: w.ledger, Objects: w.Store, Pipelines: []audit.Pipeline{w.pipeline},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (w *world) put(t *testing.T, key, body string) ledger.Identity {
	t.Helper()
	ref := event.Object{Bucket: photos, Key: key}
	if _, err := w.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader(body), Size: int64(len(body))}, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	info, err := w.Head(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return worker.Identify(&info)
}

func (w *world) settled(t *testing.T, rows ...ledger.Row) {
	t.Helper()
	var changes []ledger.Change
	for i := range rows {
		r := &rows[i]
		r.Nonce, r.CreatedAt, r.UpdatedAt = ledger.Nonce{1}, w.at, w.at
		changes = append(changes, ledger.Change{Key: r.RowKey, Row: r})
	}
	if _, err := ledger.New(w.ledger).Swap(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
}

func rowWithHave(key string, kind event.Kind, id ledger.Identity) ledger.Row {
	v := ledger.Version{Generation: 1, Kind: kind, Identity: id}
	return ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: photos, Key: key}, Want: v, Have: v, Lease: ledger.Lease{Fence: 1}}
}

func (w *world) audit(t *testing.T, o audit.Options) audit.Counts {
	t.Helper()
	if o.SettleWindow == 0 {
		o.SettleWindow = time.Hour
	}
	r, err := w.auditor(t).Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Total()
}

func (w *world) settle(t *testing.T) (raised []string) {
	t.Helper()
	var changes []ledger.Change
	for row, err := range w.ledger.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Settled() || row.Dead {
			continue
		}
		raised = append(raised, fmt.Sprintf("%s %s", row.Want.Kind, row.Key))
		next := row
		next.Have, next.Doubt, next.Nonce, next.UpdatedAt = row.Want, false, ledger.Nonce{2}, w.at
		changes = append(changes, ledger.Change{Key: row.RowKey, Expect: row.Nonce, Row: &next})
	}
	if _, err := ledger.New(w.ledger).Swap(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	return raised
}

func TestRunFindsEachLoss(t *testing.T) {
	w := newWorld(t)
	w.settled(t,
		rowWithHave("gone", event.Created, ledger.Identity{ETag: "x"}),
		rowWithHave("known", event.Created, w.put(t, "known", "a")),
		rowWithHave("overwritten", event.Created, w.put(t, "overwritten", "before")),
		rowWithHave("removed", event.Removed, ledger.Identity{}),
		rowWithHave("removed-and-back", event.Removed, ledger.Identity{}),
	)
	w.put(t, "overwritten", "after that")
	w.put(t, "removed-and-back", "a")
	w.put(t, "unheard-of", "a")
	w.put(t, "not-matched.tmp", "a")
	w.at = time.Now()
	w.put(t, "young", "a")
	w.at = time.Now().Add(-24 * time.Hour)

	want := audit.Counts{Listed: 5, Rows: 5, Inspected: 4, LostCreations: 2, LostOverwrites: 1, LostRemovals: 1, Created: 3, Removable: 1, TooRecent: 1}
	if got := w.audit(t, audit.Options{DryRun: true}); got != want {
		t.Errorf("a dry run: %+v, want %+v", got, want)
	}
	if raised := w.settle(t); raised != nil {
		t.Errorf("a dry run raised %q", raised)
	}
	want.Repaired = 4
	if got := w.audit(t, audit.Options{}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := w.settle(t), []string{"removed gone", "created overwritten", "created removed-and-back", "created unheard-of"}; strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("raised %q, want %q", got, want)
	}
	want = audit.Counts{Listed: 5, Rows: 6, Created: 4, TooRecent: 1}
	if got := w.audit(t, audit.Options{}); got != want {
		t.Errorf("a second audit: %+v, want %+v", got, want)
	}
	reports, err := w.auditor(t).Reports(t.Context())
	if err != nil || len(reports) != 2 {
		t.Errorf("%d reports, %v: want one per audit that is not a dry run", len(reports), err)
	}
}

func TestListingAsOf(t *testing.T) {
	w := newWorld(t)
	w.settled(t,
		rowWithHave("gone", event.Created, ledger.Identity{ETag: "x"}),
		rowWithHave("overwritten", event.Created, w.put(t, "overwritten", "before")),
	)
	old := membucket.New(func() time.Time { return w.at }, []string{photos})
	if _, err := old.Put(t.Context(), event.Object{Bucket: photos, Key: "overwritten"}, bucket.Object{Body: strings.NewReader("before"), Size: 6}, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	asOf := w.at.Add(time.Hour)
	w.at = asOf.Add(time.Hour)
	w.settled(t, rowWithHave("made since", event.Created, w.put(t, "made since", "a")))
	want := audit.Counts{Listed: 1, Rows: 3, Inspected: 1, LostRemovals: 1, Created: 3, Removable: 1, TooRecent: 1}
	if got := w.audit(t, audit.Options{Listing: old, AsOf: asOf, DryRun: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want.Inspected, want.TooRecent, want.Removable, want.Contradicted = 3, 0, 2, 1
	if got := w.audit(t, audit.Options{Listing: old, DryRun: true}); got != want {
		t.Errorf("without AsOf: %+v, want %+v", got, want)
	}
}
