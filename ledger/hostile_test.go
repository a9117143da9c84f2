package ledger_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Otherwise the correction of a bad upload would never revive the object.
func TestEventsFromTheFuture(t *testing.T) {
	p := ledger.DefaultPolicy()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(when time.Time, etag string) *event.Event {
		return &event.Event{Kind: event.Created, Time: when, ETag: etag}
	}
	row := ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k"}}
	row, _ = row.Observe(at(now.AddDate(7000, 0, 0), "bad"), false, now)
	row, a, why := row.Claim("w", &p, now)
	if why != ledger.Granted {
		t.Fatal(why)
	}
	row, _ = row.Fail(&a, &ledger.Ending{}, &ledger.Failure{Message: "not a picture", Permanent: true}, 0.5, &p, now)
	if !row.Dead {
		t.Fatal("not dead")
	}
	row, _ = row.Observe(at(now.Add(time.Minute), "good"), false, now.Add(time.Minute))
	if row.Dead || row.EventTime.After(now.Add(time.Hour)) || row.CreatedTime.After(now.Add(time.Hour)) {
		t.Errorf("dead %v, event time %s, created %s", row.Dead, row.EventTime, row.CreatedTime)
	}
}

func TestUncountedFailures(t *testing.T) {
	p := ledger.DefaultPolicy()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	row := ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k"}}
	row, _ = row.Observe(&event.Event{Kind: event.Created, Time: now}, false, now)
	for range 10 * p.Attempts {
		next, a, why := row.Claim("w", &p, now)
		if why != ledger.Granted {
			t.Fatal(why)
		}
		next, ok := next.Fail(&a, &ledger.Ending{}, &ledger.Failure{Message: "down", Uncounted: true}, 0.999, &p, now)
		wait := next.RetryAt.Sub(now)
		if !ok || next.Dead || next.Attempts != 0 || wait < 25*p.Base || wait > 32*p.Base {
			t.Fatalf("dead %v, %d attempts, again in %s", next.Dead, next.Attempts, wait)
		}
		row, now = next, next.RetryAt
	}
}
