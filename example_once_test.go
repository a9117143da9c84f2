package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

// message is a source of one message.
type message struct {
	payload string
	outcome source.Outcome
}

func (m *message) Declares() (event.Dialect, bool) { return event.AWS, false }

func (m *message) Run(ctx context.Context, sink source.Sink) error {
	batch, err := event.Parse([]byte(m.payload), event.AWS)
	if err != nil {
		return err
	}
	answer := make(chan source.Outcome, 1)
	if err := sink.Deliver(ctx, source.Delivery{Events: batch.Events, Done: func(o source.Outcome) { answer <- o }}); err != nil {
		return err
	}
	m.outcome = <-answer
	return nil
}

// load succeeds at the second attempt.
func load(_ context.Context, t *pawl.Task) error {
	fmt.Println("loading", t.Object, "attempt", t.Attempt)
	if t.Attempt == 1 {
		return errors.New("the database is busy")
	}
	return nil
}

// handle is called once for each message, in a process that may end afterwards.
func handle(ctx context.Context, records store.Store, payload string) (source.Outcome, error) {
	m := &message{payload: payload}
	p, err := pawl.New(pawl.Config{
		Ledger: records, Sources: []pawl.Source{m}, NoSweep: true, Ack: pawl.AckSettled,
		Retry: pawl.Retry{Base: time.Millisecond},
		Pipelines: []pawl.Pipeline{{
			Name: "load", Match: pawl.Match{Bucket: "notes"}, Order: pawl.EventOrder, Handler: pawl.HandlerFunc(load),
		}},
	})
	if err != nil {
		return source.Outcome{}, err
	}
	err = p.Run(ctx)
	return m.outcome, err
}

// A program that processes one message never sweeps, and acknowledges only settled
// messages. The queue redelivers a message until then. The ledger must outlive the
// program; this example uses one in memory.
func Example_noSweep() {
	records := memory.New()
	for done := false; !done; {
		outcome, err := handle(context.Background(), records, notification)
		if err != nil {
			log.Fatal(err)
		}
		done = outcome.Ack
		<-time.After(outcome.RetryAfter)
	}
	// Output:
	// loading s3://notes/hello.txt attempt 1
	// loading s3://notes/hello.txt attempt 2
}
