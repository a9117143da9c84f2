package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func row(key string) *ledger.Row {
	v := ledger.Version{Generation: 1, Kind: event.Removed}
	return &ledger.Row{RowKey: ledger.RowKey{Pipeline: pipelineName, Bucket: inputBucket, Key: key}, Want: v, Have: v}
}

func TestUnfinished(t *testing.T) {
	for name, c := range map[string]struct {
		change        func(r *ledger.Row)
		waiting, dead []string
	}{
		"settled":   {change: func(*ledger.Row) {}},
		"pending":   {change: func(r *ledger.Row) { r.Want.Generation++ }, waiting: []string{"s3://photos/k is pending"}},
		"dead":      {change: func(r *ledger.Row) { r.Dead, r.LastError = true, "no" }, dead: []string{"s3://photos/k is dead: no"}},
		"held":      {change: hold(noon.Add(1)), waiting: []string{"s3://photos/k is processing"}},
		"expired":   {change: hold(noon), waiting: []string{"s3://photos/k is stuck"}},
		"to verify": {change: func(r *ledger.Row) { r.VerifyAt = noon }, waiting: []string{"s3://photos/k waits for its verification"}},
		"failed": {
			change:  func(r *ledger.Row) { r.Want.Generation, r.RetryAt, r.LastError = 2, noon, "no" },
			waiting: []string{"s3://photos/k is failed: no"},
		},
	} {
		r := row("k")
		c.change(r)
		waiting, dead := rows{"k": r}.unfinished(noon)
		if diff := cmp.Diff([2][]string{c.waiting, c.dead}, [2][]string{waiting, dead}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNewlyDead(t *testing.T) {
	r := row("k")
	rs, known := rows{"fine": row("fine"), "k": r}, map[string]int64{}
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, rs.newlyDead(known)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check()
	r.Dead, r.Lease.Fence, r.LastError = true, 7, "s3://photos/k: not a picture"
	check("s3://photos/k failed permanently: not a picture")
	check()
	r.Lease.Fence, r.LastError = 8, "too large"
	check("s3://photos/k failed permanently: too large")
}

func TestMismatchReason(t *testing.T) {
	for key, want := range map[string]string{
		"in/cat.jpg": "", "in/CAT.JPG": "", "in/a/b.webp": "", "cat.jpg": "begin with in/", "in/cat.txt": "end in one of .jpg", "in/": "end in one of",
	} {
		if got := mismatchReason(key); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

func hold(until time.Time) func(r *ledger.Row) {
	return func(r *ledger.Row) { r.Lease = ledger.Lease{Owner: "h/1/n", Until: until} }
}

func TestHeldAndTakenOver(t *testing.T) {
	rs := rows{"free": row("free"), "a": row("a"), "b": row("b"), "c": row("c")}
	rs["a"].Lease.Owner, rs["b"].Lease.Owner, rs["c"].Lease.Owner = "host/12/n", "host/12/m", "host/123/o"
	rs["c"].History = []ledger.Entry{{What: "completed"}, {What: "taken over"}, {What: "claimed"}}
	if n := rs.held(12); n != 2 {
		t.Errorf("12 holds %d, want 2", n)
	}
	if n := rs.held(1); n != 0 {
		t.Errorf("1 holds %d, want none", n)
	}
	if n := rs.takenOver(); n != 1 {
		t.Errorf("%d taken over, want 1", n)
	}
}
