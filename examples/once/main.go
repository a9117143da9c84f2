// Command once handles one message and ends, as a function in the cloud does. It
// reads a notification from standard input, and exits with 75 if the queue is to
// deliver the message again:
//
//	go run ./examples/once < examples/once/message.json
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/sqlite"
)

const again = 75 // EX_TEMPFAIL

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := handle(context.Background(), body)
	switch {
	case err != nil:
		log.Fatal(err)
	case !outcome.Ack:
		log.Print("deliver it again after ", outcome.RetryAfter, ": ", outcome.Err)
		os.Exit(again)
	}
	fmt.Printf("news %d, duplicate %d, stale %d\n", outcome.Verdicts.Raised, outcome.Verdicts.Duplicate, outcome.Verdicts.Stale)
}

// handle returns what became of a message.
func handle(ctx context.Context, body []byte) (_ source.Outcome, err error) {
	rows, err := sqlite.Open(ctx, "once.db")
	if err != nil {
		return source.Outcome{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	m := &message{body: body}
	p, err := pawl.New(pawl.Config{
		Ledger: rows, Sources: []pawl.Source{m},
		NoSweep: true, Ack: pawl.AckSettled, // the message brings the next attempt
		Pipelines: []pawl.Pipeline{{
			Name: "load", Match: pawl.Match{Bucket: "exports"}, Order: pawl.EventOrder, Handler: pawl.HandlerFunc(load),
		}},
	})
	if err != nil {
		return source.Outcome{}, err
	}
	err = p.Run(ctx)
	return m.outcome, err
}

// load is the effect.
func load(_ context.Context, t *pawl.Task) error {
	fmt.Println("loading", t.Object, t.Kind)
	return nil
}

// message is a source of one message.
type message struct {
	body    []byte
	outcome source.Outcome
}

// Declares implements source.Declarer: event order needs a dialect that is trusted.
func (m *message) Declares() (event.Dialect, bool) { return event.AWS, false }

// Run implements pawl.Source.
func (m *message) Run(ctx context.Context, sink source.Sink) error {
	batch, err := event.Parse(m.body, event.AWS)
	if err != nil {
		return err
	}
	answer := make(chan source.Outcome, 1)
	d := source.Delivery{Events: batch.Events, Done: func(o source.Outcome) { answer <- o }}
	if err := sink.Deliver(ctx, d); err != nil {
		return err
	}
	m.outcome = <-answer // which comes in any case
	return nil
}
