package audit_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

const day = 24 * time.Hour

func (w *world) putOldObjects(t *testing.T, keys ...string) {
	t.Helper()
	defer func(at time.Time) { w.at = at }(w.at)
	w.at = time.Now().Add(-100 * day)
	for _, key := range keys {
		w.settled(t, rowWithHave(key, event.Created, w.put(t, key, "a")))
	}
}

func (w *world) purge(t *testing.T, retain time.Duration) audit.Purged {
	t.Helper()
	p := ledger.DefaultPolicy()
	p.RowRetention, p.PurgeSettled = retain, true
	done, err := audit.Purge(t.Context(), w.ledger, "p", &p, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestPurgedRowsAreNotLost(t *testing.T) {
	w := newWorld(t)
	w.putOldObjects(t, "a", "b")
	if done := w.purge(t, 30*day); done.Dropped != 2 {
		t.Fatalf("%+v", done)
	}
	w.put(t, "new", "a")
	want := audit.Counts{Listed: 3, Inspected: 1, LostCreations: 1, PossiblyPurged: 2}
	if got := w.audit(t, audit.Options{DryRun: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	w.putOldObjects(t, "c")
	if done := w.purge(t, 60*day); done.Dropped != 1 {
		t.Fatalf("%+v", done)
	}
	defer func(at time.Time) { w.at = at }(w.at)
	w.at = time.Now().Add(-45 * day) // the first purge dropped rows of this age
	w.put(t, "between", "a")
	want = audit.Counts{Listed: 5, Inspected: 1, LostCreations: 1, PossiblyPurged: 4}
	if got := w.audit(t, audit.Options{DryRun: true}); got != want {
		t.Errorf("after a purge of less: %+v, want %+v", got, want)
	}
	w.pipeline.Name = "another"
	want = audit.Counts{Listed: 5, Inspected: 5, LostCreations: 5}
	if got := w.audit(t, audit.Options{DryRun: true}); got != want {
		t.Errorf("a pipeline that never purged: %+v, want %+v", got, want)
	}
}

func TestFirstAuditFindsOldObjects(t *testing.T) {
	w := newWorld(t)
	w.at = time.Now().Add(-100 * day)
	w.put(t, "a", "a")
	w.settled(t, rowWithHave("gone", event.Removed, ledger.Identity{}))
	if done := w.purge(t, 30*day); done.Dropped != 1 {
		t.Fatalf("%+v", done)
	}
	want := audit.Counts{Listed: 1, Inspected: 1, LostCreations: 1}
	if got := w.audit(t, audit.Options{DryRun: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPurgedVersionsAreNotLost lists with and without version ids.
func TestPurgedVersionsAreNotLost(t *testing.T) {
	w := newWorld(t)
	w.putOldObjects(t, "a")
	w.purge(t, 30*day)
	w.pipeline.EachVersion = true
	w.putOldObjects(t, "b")
	want := audit.Counts{Listed: 2, Rows: 1, Created: 1, PossiblyPurged: 1}
	if got := w.audit(t, audit.Options{DryRun: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	id := w.put(t, "new", "a").VersionID
	all := versionListing{w.Store, map[string][]string{"a": {id}, "b": {""}, "new": {id}}}
	if got := w.audit(t, audit.Options{DryRun: true, Listing: all}); got.PossiblyPurged != 1 {
		t.Errorf("%+v", got)
	}
}

// The store's clock is ahead, so that an object is newer than its row.
func TestWatermarkCoversSkew(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (ledger.Store, error){
		"memory": func(*testing.T) (ledger.Store, error) { return ledger.NewRows(memory.New()), nil },
		"SQLite": func(t *testing.T) (ledger.Store, error) {
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
			return ledger.NewRows(s), err
		},
		"PostgreSQL": func(t *testing.T) (ledger.Store, error) {
			s, err := postgres.Open(t.Context(), servertest.Postgres(t).URL)
			return ledger.NewRows(s), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var err error
			if w.ledger, err = open(t); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.ledger.Close() })
			p := ledger.DefaultPolicy()
			p.Skew, p.RowRetention, p.PurgeSettled = time.Hour, 30*day, true
			settled := time.Now().Add(-p.RowRetention - time.Minute)
			w.at = settled.Add(p.Skew / 2)
			row := rowWithHave("a", event.Created, w.put(t, "a", "a"))
			w.at = settled
			w.settled(t, row)
			if done, err := audit.Purge(t.Context(), w.ledger, "p", &p, false, nil); err != nil || done.Dropped != 1 {
				t.Fatalf("%+v, %v", done, err)
			}
			want := audit.Counts{Listed: 1, PossiblyPurged: 1}
			if got := w.audit(t, audit.Options{DryRun: true}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

type purgeOnScan struct {
	*ledger.Rows
	purge func()
}

func (p purgeOnScan) Scan(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Row, error] {
	p.purge()
	return p.Rows.Scan(ctx, r)
}

func TestPurgeDuringAudit(t *testing.T) {
	w := newWorld(t)
	w.putOldObjects(t, "a")
	s, purged := w.ledger.(*ledger.Rows), 0
	w.ledger = purgeOnScan{s, func() {
		w.ledger = s
		purged += w.purge(t, 30*day).Dropped
	}}
	want := audit.Counts{Listed: 1, Inspected: 1, PossiblyPurged: 1}
	if got := w.audit(t, audit.Options{}); got != want || purged != 1 {
		t.Errorf("%+v, want %+v; %d rows purged", got, want, purged)
	}
}

type failingRegisters struct{ *ledger.Rows }

var errUnkept = errors.New("the disk is full")

func (failingRegisters) WriteRegister(context.Context, string, string, []byte) (string, error) {
	return "", errUnkept
}

// failingSwaps crashes its process during the first swap.
type failingSwaps struct{ *ledger.Rows }

func (d failingSwaps) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	_, err := d.Rows.Swap(ctx, changes)
	return nil, errors.Join(err, ledger.ErrUnusable, errKilled)
}

func TestWatermarkIsRaisedBeforePurge(t *testing.T) {
	w := newWorld(t)
	w.putOldObjects(t, "a")
	s := w.ledger.(*ledger.Rows)
	p := ledger.DefaultPolicy()
	p.PurgeSettled = true
	if done, err := audit.Purge(t.Context(), failingRegisters{s}, "p", &p, false, nil); !errors.Is(err, errUnkept) || done.Dropped != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := audit.Purge(t.Context(), struct{ ledger.Store }{s}, "p", &p, false, nil); err == nil {
		t.Error("a ledger without registers was purged")
	}
	want := audit.Counts{Listed: 1, Rows: 1, Created: 1}
	if got := w.audit(t, audit.Options{DryRun: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, err := audit.Purge(t.Context(), failingSwaps{s}, "p", &p, false, nil); !errors.Is(err, errKilled) {
		t.Error(err)
	}
	want = audit.Counts{Listed: 1, PossiblyPurged: 1}
	if got := w.audit(t, audit.Options{DryRun: true}); got != want {
		t.Errorf("after a crash: %+v, want %+v", got, want)
	}
}
