package event_test

import (
	"fmt"
	"log"

	"github.com/pawlhq/pawl/event"
)

func ExampleParse() {
	payload := []byte(`{"Records": [{
		"eventVersion": "2.1",
		"eventSource": "aws:s3",
		"eventTime": "2025-03-02T09:15:00.417Z",
		"eventName": "ObjectCreated:Put",
		"s3": {
			"bucket": {"name": "photos"},
			"object": {"key": "in/red+flower.jpg", "size": 1024, "sequencer": "0055AED6DCD90281E5"}
		}
	}]}`)
	batch, err := event.Parse(payload, event.Detect)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range batch.Events {
		fmt.Println(batch.Dialect, e.Kind, e.Object, e.Sequencer)
	}
	// Output:
	// aws created "s3://photos/in/red flower.jpg" 0055AED6DCD90281E5
}
