package engine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func objectKey(name string) ledger.RowKey {
	return ledger.RowKey{Pipeline: "p", Bucket: "b", Key: name}
}

func parkObject(t *tracker, key ledger.RowKey) {
	en := &entry{key: key}
	t.track(en)
	t.park(en)
}

func TestTrackerParksAndResumes(t *testing.T) {
	tr := newTracker()
	en := &entry{key: objectKey("k")}
	tr.park(en) // was not delivered
	tr.resume(en)
	if tr.unsettled() != 0 || en.tracked {
		t.Fatal("an object is counted that no delivery named")
	}
	tr.track(en)
	tr.track(en)
	tr.park(en)
	if tr.unsettled() != 1 || tr.active != 0 || en.tracked {
		t.Fatalf("a parked object: %d are unsettled, %d active", tr.unsettled(), tr.active)
	}
	again := &entry{key: en.key}
	tr.resume(again)
	if tr.unsettled() != 1 || tr.active != 1 || !again.tracked {
		t.Fatalf("a resumed object: %d are unsettled, %d active", tr.unsettled(), tr.active)
	}
	tr.untrack(again)
	tr.untrack(again)
	if tr.unsettled() != 0 {
		t.Errorf("%d objects are unsettled at the end", tr.unsettled())
	}
}

func TestTrackerLoadsInTurn(t *testing.T) {
	tr := newTracker()
	for _, name := range []string{"a", "b", "c"} {
		parkObject(&tr, objectKey(name))
	}
	if tr.wantsLoad(3) || !tr.wantsLoad(2) {
		t.Error("while deliveries follow, the limit does not decide")
	}
	tr.sourcesEnded = true
	if !tr.wantsLoad(3) {
		t.Error("parked objects are not loaded after the last delivery")
	}
	if got := tr.nextKeys(2); !slices.Equal(got, []ledger.RowKey{objectKey("a"), objectKey("b")}) || tr.wantsLoad(0) {
		t.Errorf("the first load is at %v", got)
	}
	parkObject(&tr, objectKey("a"))
	if tr.parkedBeforeLoad(objectKey("a")) || !tr.parkedBeforeLoad(objectKey("b")) || tr.parkedBeforeLoad(objectKey("x")) {
		t.Error("the answer was applied to an object that was parked after the request")
	}
	tr.answered(time.Time{})
	if got := tr.nextKeys(2); !slices.Equal(got, []ledger.RowKey{objectKey("c"), objectKey("b")}) {
		t.Errorf("the second load is at %v", got)
	}
	tr.answered(time.Time{})
	for _, name := range []string{"a", "b", "c"} {
		tr.drop(objectKey(name))
	}
	if tr.wantsLoad(0) {
		t.Error("wants a load although no object is parked")
	}
}

func TestLoadIgnoresResumedObjects(t *testing.T) {
	e := New(Config{Owner: "a", Pipelines: []string{"p"}, Policy: ledger.DefaultPolicy(), Tasks: 1, Swaps: 1, Batch: 10, SweepInterval: time.Hour, Rand: rand.New(rand.NewPCG(1, 0))})
	now := time.Unix(1000, 0)
	keys := []ledger.RowKey{objectKey("again"), objectKey("odd"), objectKey("settled")}
	for _, key := range keys {
		parkObject(&e.tracker, key)
	}
	e.Step(now, SourcesEnded{})
	e.Step(now, Deliver{ID: 1, Items: []Item{{Key: keys[0], Event: event.Event{Kind: event.Created}}}})
	out := e.Step(now, Loaded{Keys: keys, Rows: []ledger.Row{ledger.UnreadableRow(keys[1], ledger.Nonce{1}, errors.New("odd"))}})
	if r, ok := out[0].(Notice); !ok || r.Kind != Unreadable || len(out) != 1 || e.Unsettled() != 1 {
		t.Errorf("%v, and %d objects are unsettled", out, e.Unsettled())
	}
	out = e.Step(now, Swept{Pipeline: "p", Rows: []ledger.Row{ledger.UnreadableRow(keys[1], ledger.Nonce{2}, errors.New("odd"))}})
	if r, ok := out[0].(Notice); !ok || r.Kind != Unreadable {
		t.Errorf("%v: an unreadable row that was written again is not reported again", out)
	}
}
