package archive

import (
	"context"
	"testing"
	"time"
)

// A failed shard counts as stopped until this worker stores it for a while, or another worker takes it over.
func TestStoppedShards(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		failed, held bool
		owner        string
		after        time.Duration // since the end of the pause
		want         int
	}{
		"stored":                   {false, true, "me", 0, 0},
		"waiting":                  {true, false, "me", time.Hour, 1},
		"retried":                  {true, true, "me", time.Minute, 1},
		"retried successfully":     {true, true, "me", 2 * time.Minute, 0},
		"stored by another worker": {true, false, "other", time.Hour, 0},
	} {
		w := &worker{
			Archive: &Archive{Config: Config{Owner: "me", Lease: 30 * time.Second, Now: func() time.Time { return now.Add(c.after) }}},
			held:    map[string]context.CancelCauseFunc{}, pauses: map[string]retryPause{},
		}
		if c.held {
			w.held["a"] = func(error) {}
		}
		if c.failed {
			w.pauses["a"] = retryPause{until: now, next: time.Second}
		}
		w.recordTurn()
		w.recordBalance([]string{"a"}, map[string]Progress{"a": {Owner: c.owner}}, time.Hour)
		if w.Status().LastTurn.IsZero() {
			t.Errorf("%s: the last turn is forgotten", name)
		}
		if got := w.Status().Stopped; got != c.want {
			t.Errorf("%s: %d stopped shards, want %d", name, got, c.want)
		}
	}
}
