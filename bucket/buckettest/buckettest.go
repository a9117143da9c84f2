// Package buckettest is what a bucket.Store has to pass to be one. A driver's
// test calls [Run]. It also has [Faults], a store that answers as a test says.
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

// Harness is a store to be tested, and its declared abilities.
type Harness struct {
	Store  bucket.Store
	Bucket string // empty, for one test alone

	// Versioned is a second empty bucket that keeps versions. Empty: the store
	// cannot.
	Versioned string
	// Denied is the same store with credentials that it refuses. Nil: it
	// believes anyone.
	Denied bucket.Store
	// DeleteConditions says that IfMatch is honoured by Delete.
	DeleteConditions bool
	// DeleteAtomic says that it is honoured even while others write.
	DeleteAtomic bool
	// CopyConditions has the methods of a bucket.Copier that honour conditions.
	CopyConditions bucket.CopyMethod
	// LosesRemovals says that a Put may land on what was removed since its
	// condition was checked.
	LosesRemovals bool
	// MixesHeads says that Head may tell the metadata of one object and the ETag
	// of the one that was before it, or came next.
	MixesHeads bool
	// KeepsCutBodies says that the store may keep what arrived of a Put that
	// broke off, unless its body could seek.
	KeepsCutBodies bool
	// MergesMetadata says that a Put leaves the metadata of the object before.
	MergesMetadata bool
	// LosesHeaders says that the store keeps some of an object's Headers only.
	LosesHeaders bool
	// ListsBytes says that List returns keys exactly that XML cannot hold: with
	// control characters, or not UTF-8.
	ListsBytes bool
	// Alias returns the key under which the store files a key, for one that
	// takes some keys for the same. Nil: each key is itself.
	Alias func(key string) string
	// InProcess says that the store keeps its data in the test's memory, so
	// that a driver's own use of memory cannot be measured.
	InProcess bool
}

// Run runs the suite. newHarness is called for each test.
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

// object is text as an object, in a body that can only be read once.
func object(text string) bucket.Object {
	return bucket.Object{Body: io.MultiReader(strings.NewReader(text)), Size: int64(len(text)), ContentType: "text/plain"}
}

// put writes text and returns its ETag.
func (h Harness) put(t *testing.T, key, text string) string {
	t.Helper()
	etag, err := h.Store.Put(t.Context(), h.ref(key), object(text), bucket.Condition{})
	if err != nil {
		t.Fatalf("Put %q: %v", key, err)
	}
	return etag
}

// get returns an object's content.
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

// wantContent checks an object's content.
func (h Harness) wantContent(t *testing.T, key, want string) {
	t.Helper()
	if got := get(t, h.Store, h.ref(key)); got != want {
		t.Errorf("content of %q = %.60q, want %.60q", key, got, want)
	}
}

// wantAbsent checks that there is no object.
func (h Harness) wantAbsent(t *testing.T, key string) {
	t.Helper()
	info, err := h.Store.Head(t.Context(), h.ref(key))
	wantError(t, "Head", err, bucket.ErrNotFound)
	if err == nil {
		t.Errorf("%q is there: %+v", key, info)
	}
}

var sentinels = []error{
	bucket.ErrNotFound, bucket.ErrNoBucket, bucket.ErrDenied, bucket.ErrInvalid,
	bucket.ErrPrecondition, bucket.ErrConflict, bucket.ErrUnclear, bucket.ErrUnavailable,
}

// wantError checks that err matches want and no other kind.
func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	for _, kind := range sentinels {
		if got := errors.Is(err, kind); got != (kind == want) {
			t.Errorf("%s = %v; is it %q? %t, want only %q", what, err, kind, got, want)
		}
	}
}
