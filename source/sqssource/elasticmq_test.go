package sqssource_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/sqssource"
)

func TestElasticMQ(t *testing.T) {
	credentials(t)
	server := servertest.ElasticMQ(t)
	for name, test := range map[string]func(*testing.T, *servertest.Queues){
		"rules": conformance, "bodies": bodies, "unreadable": unreadableMessage, "held": heldMessage, "missing": missingQueue, "maximum": maxMessageOfQueue,
	} {
		t.Run(name, func(t *testing.T) { test(t, server) })
	}
}

// Payloads count as acknowledged when their queue is empty.
func conformance(t *testing.T, server *servertest.Queues) {
	sourcetest.Test(t, func(t *testing.T, sink source.Sink, shutdownTimeout time.Duration, payloads []string) *sourcetest.Running {
		q := newQueue(t, server, nil)
		q.send(t, payloads...)
		r := run(t, sqssource.Config{URL: q.url, ShutdownTimeout: shutdownTimeout}, sink)
		acknowledged := make(chan struct{})
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		var watch sync.WaitGroup
		watch.Go(func() {
			for ctx.Err() == nil {
				if visible, held, err := q.count(ctx); err == nil && visible+held == 0 {
					close(acknowledged)
					return
				}
			}
		})
		t.Cleanup(func() { cancel(); watch.Wait() })
		return &sourcetest.Running{Source: r.Source, Cancel: r.cancel, Ended: r.ended, Acknowledged: acknowledged}
	})
}

func bodies(t *testing.T, server *servertest.Queues) {
	q := newQueue(t, server, nil)
	dialects := map[string]event.Dialect{
		"aws-created-put": event.AWS, "aws-removed-and-expired": event.AWS, "aws-test-event": "",
		"sns-aws-created-put": event.AWS, "sns-aws-test-event": "",
		"eventbridge-created": event.EventBridge, "eventbridge-deleted": event.EventBridge, "eventbridge-restored": "",
	}
	want := map[event.Dialect]int{}
	for name, dialect := range dialects {
		b, err := os.ReadFile(filepath.Join("..", "..", "event", "testdata", "samples", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		q.send(t, string(b))
		if dialect != "" {
			want[dialect]++
		}
	}
	sink := sourcetest.NewSink(len(dialects))
	run(t, sqssource.Config{URL: q.url}, sink)
	for range 5 {
		d := sink.Next(t)
		want[d.Events[0].Dialect]--
		d.Done(source.Outcome{Ack: true})
	}
	q.wantCount(t, 0, 0)
	for dialect, n := range want {
		if n != 0 {
			t.Errorf("%d deliveries of %s are missing", n, dialect)
		}
	}
}

func unreadableMessage(t *testing.T, server *servertest.Queues) {
	dead := newQueue(t, server, nil)
	arn, err := server.Client().GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &dead.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	q := newQueue(t, server, map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"2"}`, arn.Attributes["QueueArn"]),
	})
	secret := strings.Repeat("x", 300)
	q.send(t, `{"not": "a notification", "`+secret+`": 1}`, "not even JSON\n", sourcetest.Payload("good"))
	l, sink, began := &log{}, sourcetest.NewSink(3), time.Now()
	run(t, sqssource.Config{URL: q.url, Logger: logger(l)}, sink, func(s *sqssource.Source) { s.SetVisibility(3*time.Second, time.Hour) })
	d := sink.Next(t)
	if key := d.Events[0].Object.Key; key != "good" {
		t.Errorf("delivered %s", key)
	}
	d.Done(source.Outcome{Ack: true})
	dead.wantCount(t, 2, 0)
	q.wantCount(t, 0, 0)
	n := l.lines("a message cannot be read")
	if took := time.Since(began); n == 0 || n > 1+int(took/(10*time.Second)) {
		t.Errorf("logged %d times within %v: want at most one in ten seconds", n, took)
	}
	if l.lines(secret) != 0 {
		t.Error("the log contains the whole message")
	}
}

func heldMessage(t *testing.T, server *servertest.Queues) {
	q := newQueue(t, server, nil)
	q.send(t, sourcetest.Payload("a"))
	sink := sourcetest.NewSink(1)
	r := run(t, sqssource.Config{URL: q.url, ShutdownTimeout: time.Millisecond}, sink, func(s *sqssource.Source) { s.SetVisibility(12*time.Second, time.Hour) }) // allows for pauses between two renewals
	sink.Next(t)
	poll := &sqs.ReceiveMessageInput{QueueUrl: &q.url, WaitTimeSeconds: 20, VisibilityTimeout: 60}
	if out, err := q.Client().ReceiveMessage(t.Context(), poll); err != nil || len(out.Messages) != 0 {
		t.Fatalf("another consumer received %d messages, %v", len(out.Messages), err)
	}
	r.cancel()
	if err := sourcetest.Wait(t, r.ended, "the end of Run"); err != nil {
		t.Error(err)
	}
	out, err := q.Client().ReceiveMessage(t.Context(), poll)
	if err != nil || len(out.Messages) != 1 {
		t.Errorf("after the end another consumer received %d messages, %v", len(out.Messages), err)
	}
}

func missingQueue(t *testing.T, server *servertest.Queues) {
	r := run(t, sqssource.Config{URL: server.Endpoint + "/000000000000/nobody"}, sourcetest.NewSink(1))
	err := sourcetest.Wait(t, r.ended, "the end of Run")
	if err == nil || !strings.Contains(err.Error(), "the queue does not exist") {
		t.Errorf("Run = %v", err)
	}
}
