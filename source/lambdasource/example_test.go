package lambdasource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source/lambdasource"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/store/memory"
)

// Example processes one invocation with two messages of a queue. The response names the message that failed, and
// SQS delivers it again. Package awslambda does this in a complete function.
func Example() {
	payload, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "m1", EventSource: "aws:sqs", Body: sourcetest.Payload("good.jpg")},
		{MessageId: "m2", EventSource: "aws:sqs", Body: sourcetest.Payload("busy.jpg")},
	}})
	if err != nil {
		log.Fatal(err)
	}
	messages, err := lambdasource.New(payload, lambdasource.Config{Dialect: event.AWS})
	if err != nil {
		log.Fatal(err)
	}
	tag := func(_ context.Context, t *pawl.Task) error {
		if t.Object.Key == "busy.jpg" {
			return pawl.RetryAfter(errors.New("the model is busy"), time.Minute)
		}
		return nil
	}
	p, err := pawl.New(pawl.Config{
		Ledger: memory.New(), Sources: []pawl.Source{messages}, NoSweep: true, Ack: pawl.AckSettled, Logger: slog.New(slog.DiscardHandler),
		Pipelines: []pawl.Pipeline{{
			Name: "tag", Match: pawl.Match{Bucket: "photos"}, Order: pawl.EventOrder, Handler: pawl.HandlerFunc(tag),
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	response, err := messages.Response(context.Background())
	fmt.Println(string(response), err)
	// Output: {"batchItemFailures":[{"itemIdentifier":"m2"}]} <nil>
}
