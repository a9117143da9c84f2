// Package buckettest contains the conformance suite of [bucket.Store]. [Faults] injects faults.
package buckettest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// Harness is a store under test and its properties.
type Harness struct {
	Store  bucket.Store
	Bucket string // an empty bucket for one test

	// Versioned is an empty bucket with versioning, or "" if the store has none.
	Versioned string
	// Denied is the same store with bad credentials. It is nil if the store accepts all
	// credentials.
	Denied bucket.Store
	// DeleteConditions is set if Delete honours IfMatch.
	DeleteConditions bool
	// DeleteAtomic is set if Delete also honours IfMatch during concurrent writes.
	DeleteAtomic bool
	// CopyConditions contains the copy methods that honour conditions.
	CopyConditions bucket.CopyMethod
	// LosesRemovals is set if a Put may succeed although the object was deleted after the check
	// of its condition.
	LosesRemovals bool
	// MixesHeads is set if Head may return the metadata of one object with the ETag of another.
	MixesHeads bool
	// KeepsCutBodies is set if a part of a truncated body that is not an io.Seeker may remain.
	KeepsCutBodies bool
	// MergesMetadata is set if a Put keeps metadata of the previous object.
	MergesMetadata bool
	LosesHeaders   bool
	// ListsBytes is set if List returns keys unchanged that XML cannot represent.
	ListsBytes bool
	// Alias returns the key under which the store stores a key. It is nil if no keys are equal.
	Alias func(key string) string
	// InProcess is set if the store uses the test's memory. The suite cannot measure the driver
	// then.
	InProcess bool
}

// Run runs the suite. It calls newHarness for each test.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, group := range []map[string]func(*testing.T, Harness){
		readTests, putTests, deleteTests, listTests, keyTests, raceTests, errorTests, streamTests, linearTests, headerTests, copyTests,
	} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) { test(t, newHarness(t)) })
		}
	}
}

func (h Harness) ref(key string) event.Object { return event.Object{Bucket: h.Bucket, Key: key} }

// object returns text as a body that can be read only once.
func object(text string) bucket.Object {
	return bucket.Object{Body: io.MultiReader(strings.NewReader(text)), Size: int64(len(text)), ContentType: "text/plain"}
}

func (h Harness) put(t *testing.T, key, text string) string {
	t.Helper()
	etag, err := h.Store.Put(t.Context(), h.ref(key), object(text), bucket.Condition{})
	if err != nil {
		t.Fatalf("Put %q: %v", key, err)
	}
	return etag
}

func get(t *testing.T, s bucket.Store, ref event.Object) string {
	t.Helper()
	_, body, err := s.Get(t.Context(), ref)
	if err != nil {
		t.Fatalf("Get %q: %v", ref.Key, err)
	}
	defer body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(body); err != nil {
		t.Fatalf("reading %q: %v", ref.Key, err)
	}
	return b.String()
}

func (h Harness) wantContent(t *testing.T, key, want string) {
	t.Helper()
	if got := get(t, h.Store, h.ref(key)); got != want {
		t.Errorf("content of %q = %.60q, want %.60q", key, got, want)
	}
}

func (h Harness) wantAbsent(t *testing.T, key string) {
	t.Helper()
	info, err := h.Store.Head(t.Context(), h.ref(key))
	wantError(t, "Head", err, bucket.ErrNotFound)
	if err == nil {
		t.Errorf("%q exists: %+v", key, info)
	}
}

var sentinels = []error{
	bucket.ErrNotFound, bucket.ErrNoBucket, bucket.ErrDenied, bucket.ErrInvalid,
	bucket.ErrPrecondition, bucket.ErrConflict, bucket.ErrUnclear, bucket.ErrUnavailable,
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	for _, kind := range sentinels {
		if got := errors.Is(err, kind); got != (kind == want) {
			t.Errorf("%s = %v; is it %q? %t, want only %q", what, err, kind, got, want)
		}
	}
}
