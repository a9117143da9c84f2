//go:build unix

package e2e

import (
	crand "crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// No notification may be outstanding.
func auditAll(t *testing.T, store bucket.Store, led ledger.Store, name string, pipelines []string) (raised []ledger.RowKey) {
	t.Helper()
	keys := map[string]bool{}
	for info, err := range store.List(t.Context(), name, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys[info.Key] = true
	}
	for row, err := range led.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Bucket == name {
			keys[row.Key] = true
		}
	}
	for key := range keys {
		for _, p := range pipelines {
			k := ledger.RowKey{Pipeline: p, Bucket: name, Key: key}
			if auditOne(t, store, ledger.New(led), k) != audit.None {
				raised = append(raised, k)
			}
		}
	}
	slices.SortFunc(raised, ledger.RowKey.Compare)
	return raised
}

func auditOne(t *testing.T, store bucket.Store, led *ledger.Ledger, key ledger.RowKey) audit.Finding {
	t.Helper()
	for {
		row := ledger.Row{RowKey: key}
		rows, err := led.Load(t.Context(), []ledger.RowKey{key})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 0 {
			row = rows[0]
		}
		var seen audit.Observation
		info, err := store.Head(t.Context(), event.Object{Bucket: key.Bucket, Key: key.Key})
		switch {
		case err == nil:
			seen = audit.Observation{Exists: true, Identity: worker.Identify(&info)}
		case !errors.Is(err, bucket.ErrNotFound):
			t.Fatal(err)
		}
		next, loss := audit.Decide(row, seen, 0, time.Now().UTC())
		if loss == audit.None {
			return loss
		}
		_, _ = crand.Read(next.Nonce[:])
		out, err := led.Swap(t.Context(), []ledger.Change{{Key: key, Expect: row.Nonce, Row: &next}})
		if err != nil {
			t.Fatal(err)
		}
		if out[0].Applied {
			return loss
		}
	}
}
