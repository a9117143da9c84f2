package demo

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/event"
)

func TestNotification(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 700, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		c := change{
			bucket: inputBucket, key: string(rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "key")), removed: rapid.Bool().Draw(t, "removed"),
			at: at, order: rapid.Uint64().Draw(t, "order"),
		}
		if !c.removed {
			c.etag, c.size = "0123", 7
		}
		e := parse(t, c)
		kind := event.Created
		if c.removed {
			kind = event.Removed
		}
		if e.Object != (event.Object{Bucket: c.bucket, Key: c.key}) || e.Kind != kind || !e.Time.Equal(at) || e.ETag != c.etag || e.Size != c.size {
			t.Fatalf("%+v became %+v", c, e)
		}
		later := c
		later.order = c.order + rapid.Uint64Range(1, 1<<40).Draw(t, "later")
		if later.order > c.order && parse(t, later).Sequencer.CompareSameKey(e.Sequencer) <= 0 {
			t.Fatalf("%d does not come after %d", later.order, c.order)
		}
	})
}

func parse(t *rapid.T, c change) event.Event {
	batch, err := event.Parse(notification(c), event.Detect)
	if err != nil {
		t.Fatal(err)
	}
	if batch.Dialect != event.AWS || len(batch.Events) != 1 {
		t.Fatalf("got %d events of %s", len(batch.Events), batch.Dialect)
	}
	return batch.Events[0]
}
