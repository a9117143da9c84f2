package buckettest

import (
	"testing"

	"github.com/pawlhq/pawl/bucket"
)

var deleteTests = map[string]func(*testing.T, Harness){
	"delete/plain":    testDelete,
	"delete/if-match": testDeleteIfMatch,
}

func testDelete(t *testing.T, h Harness) {
	h.put(t, "k", "x")
	h.put(t, "l", "y")
	for range 2 {
		if err := h.Store.Delete(t.Context(), h.ref("k"), bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		h.wantAbsent(t, "k")
	}
	h.wantContent(t, "l", "y")
}

func testDeleteIfMatch(t *testing.T, h Harness) {
	first := h.put(t, "k", "one")
	second := h.put(t, "k", "two")
	err := h.Store.Delete(t.Context(), h.ref("k"), bucket.Condition{IfMatch: first})
	if !h.DeleteConditions {
		// A store that honours conditions must declare it.
		if err != nil {
			t.Errorf("Delete with another ETag = %v: the store honours it, so set DeleteConditions", err)
		}
		h.wantAbsent(t, "k")
		return
	}
	wantError(t, "Delete with another ETag", err, bucket.ErrPrecondition)
	h.wantContent(t, "k", "two")
	if err := h.Store.Delete(t.Context(), h.ref("k"), bucket.Condition{IfMatch: second}); err != nil {
		t.Errorf("Delete with the matching ETag: %v", err)
	}
	h.wantAbsent(t, "k")
	if err := h.Store.Delete(t.Context(), h.ref("k"), bucket.Condition{IfMatch: second}); err != nil {
		wantError(t, "Delete of a removed object", err, bucket.ErrPrecondition)
	}
}
