package event_test

import (
	"fmt"
	"testing"

	"github.com/pawlhq/pawl/event"
)

func TestEventBridgeNamesPermanentDeletion(t *testing.T) {
	for deletion, want := range map[string]string{
		"Permanently Deleted":   "Object Deleted:Delete",
		"Delete Marker Created": "Object Deleted",
	} {
		payload := fmt.Sprintf(`{"detail-type":"Object Deleted","source":"aws.s3","time":"2026-01-02T03:04:05Z","detail":{"bucket":{"name":"b"},`+
			`"object":{"key":"k","version-id":"v1","sequencer":"0055AED6DCD90281E5"},"deletion-type":%q}}`, deletion)
		batch, err := event.Parse([]byte(payload), event.Detect)
		if err != nil || len(batch.Events) != 1 || batch.Events[0].Name != want {
			t.Errorf("%s: %+v, %v; want %s", deletion, batch.Events, err, want)
		}
	}
}
