package event_test

import (
	"testing"

	"github.com/pawlhq/pawl/event"
)

func TestCheckPath(t *testing.T) {
	for key, want := range map[string]bool{
		"k": true, "a/b": true, "...": true, ".a/b.": true, "a /\n": true, "\xff": true, `a\..\b`: true, "a%2F%2Fb": true,
		"": false, "/": false, "/a": false, "a/": false, "a//b": false, ".": false, "./a": false, "a/.": false, "..": false, "a/../b": false,
	} {
		if got := (event.Object{Bucket: "b", Key: key}).CheckPath() == nil; got != want {
			t.Errorf("%q: %v", key, got)
		}
	}
}
