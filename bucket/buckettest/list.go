package buckettest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
)

var listTests = map[string]func(*testing.T, Harness){
	"list/prefix": testListPrefix,
	"list/info":   testListInfo,
	"list/pages":  testListPages,
}

func (h Harness) list(t *testing.T, prefix, startAfter string) []string {
	t.Helper()
	keys := []string{}
	for info, err := range h.Store.List(t.Context(), h.Bucket, prefix, startAfter) {
		if err != nil {
			t.Fatalf("List after %q: %v", keys, err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func testListPrefix(t *testing.T, h Harness) {
	for _, key := range []string{"b", "a/2", "a-1", "a/10", "a", "a.x/y", "é", "B", "a/1/z"} {
		if key == "a" {
			continue // some stores treat it as a folder
		}
		h.put(t, key, key)
	}
	for _, tc := range []struct {
		prefix, after string
		want          []string
	}{
		{"", "", []string{"B", "a-1", "a.x/y", "a/1/z", "a/10", "a/2", "b", "é"}},
		{"a", "", []string{"a-1", "a.x/y", "a/1/z", "a/10", "a/2"}},
		{"a/", "", []string{"a/1/z", "a/10", "a/2"}},
		{"a/1", "", []string{"a/1/z", "a/10"}},
		{"", "a/10", []string{"a/2", "b", "é"}},
		{"", "a/100", []string{"a/2", "b", "é"}},
		{"a/", "a/1/z", []string{"a/10", "a/2"}},
		{"none", "", []string{}},
		{"", "é", []string{}},
	} {
		if diff := cmp.Diff(tc.want, h.list(t, tc.prefix, tc.after)); diff != "" {
			t.Errorf("List(%q, after %q) (-want +got):\n%s", tc.prefix, tc.after, diff)
		}
	}
	for range h.Store.List(t.Context(), h.Bucket, "", "") {
		break
	}
}

func testListInfo(t *testing.T, h Harness) {
	h.put(t, "k", "hello")
	head, err := h.Store.Head(t.Context(), h.ref("k"))
	if err != nil {
		t.Fatal(err)
	}
	want := bucket.Info{Key: "k", ETag: head.ETag, Size: 5}
	for info, err := range h.Store.List(t.Context(), h.Bucket, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		// HEAD has whole seconds, a listing may have fractions.
		if d := info.ModTime.Sub(head.ModTime).Abs(); d >= 1e9 {
			t.Errorf("ModTime %v, and %v by Head", info.ModTime, head.ModTime)
		}
		want.ModTime = info.ModTime
		if diff := cmp.Diff(want, info); diff != "" {
			t.Errorf("List (-want +got):\n%s", diff)
		}
	}
}

func testListPages(t *testing.T, h Harness) {
	const n = 1005
	want := make([]string, n)
	for i := range want {
		want[i] = fmt.Sprintf("p/%04d x+y", i)
	}
	var wg sync.WaitGroup
	for part := range slices.Chunk(want, n/16+1) {
		wg.Go(func() {
			for _, key := range part {
				if _, err := h.Store.Put(t.Context(), h.ref(key), object(""), bucket.Condition{}); err != nil {
					t.Errorf("Put %q: %v", key, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(want, h.list(t, "", "")); diff != "" {
		t.Errorf("List of %d objects (-want +got):\n%s", n, diff)
	}
	if diff := cmp.Diff(want[2:], h.list(t, "p/", want[1])); diff != "" {
		t.Errorf("List after the second (-want +got):\n%s", diff)
	}
}
