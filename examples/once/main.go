// Command once processes one notification from standard input, like a function in the cloud. Exit
// code 75 asks the queue to deliver it again:
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

func handle(ctx context.Context, body []byte) (_ source.Outcome, err error) {
	rows, err := sqlite.Open(ctx, "once.db")
	if err != nil {
		return source.Outcome{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	m := &message{body: body}
	p, err := pawl.New(pawl.Config{
		Ledger: rows, Sources: []pawl.Source{m},
		NoSweep: true, Ack: pawl.AckSettled, // the redelivered message starts the next attempt
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

func load(_ context.Context, t *pawl.Task) error {
	fmt.Println("loading", t.Object, t.Kind)
	return nil
}

type message struct {
	body    []byte
	outcome source.Outcome
}

// Declares implements source.Declarer. Event order needs a trusted dialect.
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
	m.outcome = <-answer // the sink always calls Done
	return nil
}
