package worker

import (
	"testing"

	"github.com/pawlhq/pawl/event"
)

// A lifecycle rule, for example, removes old versions.
func TestOldVersionRemovals(t *testing.T) {
	removed := func(name, version string) *event.Event {
		return &event.Event{Kind: event.Removed, Name: name, Object: event.Object{Bucket: "b", Key: "k", VersionID: version}}
	}
	byEvent := &Pipeline{Order: EventOrder}
	for _, c := range []struct {
		pipeline *Pipeline
		event    *event.Event
		want     bool
	}{
		{byEvent, removed("ObjectRemoved:Delete", "v1"), true},
		{byEvent, removed("LifecycleExpiration:Delete", "v1"), true},
		{byEvent, removed("Object Deleted:Delete", "v1"), true},
		{byEvent, removed("ObjectRemoved:Delete", ""), false}, // an unversioned bucket
		{byEvent, removed("ObjectRemoved:DeleteMarkerCreated", "v2"), false},
		{&Pipeline{}, removed("ObjectRemoved:Delete", "v1"), false}, // the attempt reads the object
		{&Pipeline{Order: EventOrder, EachVersion: true}, removed("ObjectRemoved:Delete", "v1"), false},
	} {
		if got := c.pipeline.isOldVersionRemoval(c.event); got != c.want {
			t.Errorf("%s of %s: %v", c.event.Name, c.event.Object, got)
		}
	}
}
