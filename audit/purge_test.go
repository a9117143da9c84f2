package audit_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

func settled(key string, kind event.Kind, ago time.Duration) ledger.Row {
	at := time.Now().UTC().Add(-ago)
	v := ledger.Version{Kind: kind}
	return ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: key}, Want: v, Have: v, CreatedAt: at, UpdatedAt: at}
}

func store(t *testing.T, rows ...ledger.Row) ledger.Store {
	s := ledger.NewRows(memory.New())
	for _, r := range rows {
		_, _ = rand.Read(r.Nonce[:])
		if _, err := s.Swap(t.Context(), []ledger.Change{{Key: r.RowKey, Row: &r}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func keys(t *testing.T, s ledger.Store) (keys []string) {
	for r, err := range s.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, r.Key)
	}
	return keys
}

func rowsForPurge() []ledger.Row {
	const long = 100 * 24 * time.Hour
	leased, dead, verified, pending, young := settled("leased", event.Removed, long), settled("dead", event.Removed, long),
		settled("to verify", event.Removed, long), settled("pending", event.Removed, long), settled("young", event.Removed, time.Hour)
	leased.Lease = ledger.Lease{Owner: "w", Fence: 1, Until: leased.UpdatedAt}
	dead.Dead = true
	verified.VerifyAt = verified.UpdatedAt
	pending.Want.Generation++
	return []ledger.Row{leased, dead, verified, pending, young}
}

func TestPurge(t *testing.T) {
	const n, long = 1200, 31 * 24 * time.Hour
	rows := append(rowsForPurge(), settled("exists", event.Created, long))
	for i := range n {
		rows = append(rows, settled(fmt.Sprintf("gone%04d", i), event.Removed, long))
	}
	s := store(t, rows...)
	p := ledger.DefaultPolicy()
	calls := 0
	progress := func(audit.Purged) { calls++ }

	done, err := audit.Purge(t.Context(), s, "p", &p, true, nil)
	if want := (audit.Purged{Examined: n + 6, Dropped: n}); err != nil || done != want {
		t.Errorf("dry run: %+v, %v", done, err)
	}
	if got := len(keys(t, s)); got != n+6 {
		t.Fatalf("a dry run left %d rows", got)
	}
	done, err = audit.Purge(t.Context(), s, "p", &p, false, progress)
	if want := (audit.Purged{Examined: n + 6, Dropped: n}); err != nil || done != want || calls != 3 {
		t.Errorf("%+v, %v, %d calls of progress", done, err, calls)
	}
	if diff := cmp.Diff([]string{"dead", "exists", "leased", "pending", "to verify", "young"}, keys(t, s)); diff != "" {
		t.Error(diff)
	}
	p.PurgeSettled = true
	if done, err = audit.Purge(t.Context(), s, "p", &p, false, nil); err != nil || done.Dropped != 1 {
		t.Errorf("settled ones: %+v, %v", done, err)
	}
	if diff := cmp.Diff([]string{"dead", "leased", "pending", "to verify", "young"}, keys(t, s)); diff != "" {
		t.Error(diff)
	}
}

// eventDuringScan observes another event for each row just before the swap.
type eventDuringScan struct{ ledger.Store }

func (e eventDuringScan) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	for _, c := range changes {
		if c.Key.Key != "back" {
			continue
		}
		next := settled("back", event.Removed, 0)
		next.Want = ledger.Version{Kind: event.Created, Generation: 1}
		_, _ = rand.Read(next.Nonce[:])
		if _, err := e.Store.Swap(ctx, []ledger.Change{{Key: c.Key, Expect: c.Expect, Row: &next}}); err != nil {
			return nil, err
		}
	}
	return e.Store.Swap(ctx, changes)
}

func TestPurgeKeepsChangedRow(t *testing.T) {
	const long = 31 * 24 * time.Hour
	s := store(t, settled("back", event.Removed, long), settled("gone", event.Removed, long))
	p := ledger.DefaultPolicy()
	done, err := audit.Purge(t.Context(), eventDuringScan{s}, "p", &p, false, nil)
	if want := (audit.Purged{Examined: 2, Dropped: 1, Changed: 1}); err != nil || done != want {
		t.Errorf("%+v, %v", done, err)
	}
	if diff := cmp.Diff([]string{"back"}, keys(t, s)); diff != "" {
		t.Error(diff)
	}
}
