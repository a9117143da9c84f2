// Package source defines how notifications enter Pawl. A [Source] receives messages, parses them,
// and delivers their events to a [Sink].
//
// # Write a source
//
// Run receives messages until its context ends. This source has one message:
//
//	func (m *message) Run(ctx context.Context, sink source.Sink) error {
//		batch, err := event.Parse(m.payload, event.AWS)
//		if err != nil {
//			return err
//		}
//		answer := make(chan source.Outcome, 1)
//		err = sink.Deliver(ctx, source.Delivery{Events: batch.Events, Done: func(o source.Outcome) { answer <- o }})
//		if err != nil {
//			return err
//		}
//		m.outcome = <-answer
//		return nil
//	}
//
// # Acknowledge a message
//
// The sink reports the [Outcome] of each delivery by Done. A source acknowledges the message only if the
// outcome has Ack. Otherwise the message must be delivered again, not before RetryAfter.
//
// # Authenticate the sender
//
// A source must reject messages of unknown senders. A pipeline in store order reads the object before it
// acts. A pipeline in event order believes the notification.
//
// # Drivers
//
// The packages below source receive notifications over HTTP, from Amazon SQS, from an invocation of AWS
// Lambda, and from files. A source is complete when it passes package source/sourcetest.
package source

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Source receives messages until ctx ends or, if the source is finite, until it has no more. Run returns
// after all its goroutines, and returns nil after an orderly shutdown.
type Source interface {
	Run(ctx context.Context, sink Sink) error
}

// Declarer is a Source that knows the dialect of its notifications, and whether to trust their sequencers.
// Pipelines in event order need it.
type Declarer interface {
	Declares() (d event.Dialect, trustSequencer bool)
}

// Rejection is the reason why a source does not deliver a message.
type Rejection string

// Reasons.
const (
	Unauthorized Rejection = "unauthorized" // the sender has no valid token or signature
	Unreadable   Rejection = "unreadable"   // the message is no notification that Pawl can read
)

// Rejecter is a Source that may reject messages.
type Rejecter interface {
	// OnReject sets a function that is called for each rejected message, from any goroutine. It must
	// not block. Call OnReject before Run.
	OnReject(func(Rejection))
}

// Message describes the message of a delivery, for traces. A source leaves unknown fields empty.
type Message struct {
	System      string // for example aws_sqs
	Destination string // for example the name of a queue
	ID          string
	Traceparent string // the sender's W3C trace context; need not be valid
}

// Delivery is one message. Its events succeed or fail together.
type Delivery struct {
	Events  []event.Event
	Message Message
	// TrustSequencer accepts the order of a dialect that is not trusted by default.
	TrustSequencer bool
	// Done is called exactly once for each accepted delivery, from any goroutine. It must not block. After
	// its context has ended, Run waits for Done up to the shutdown timeout. After Run has returned, Done
	// has no effect; the message is delivered again.
	Done func(Outcome)
}

// Outcome is the result of a delivery.
type Outcome struct {
	// Ack reports that the ledger has every event, or that no pipeline needs it. Without Ack the message
	// must be delivered again.
	Ack bool
	// RetryAfter is the delay before a message without Ack is delivered again.
	RetryAfter time.Duration
	Verdicts   Verdicts
	// Err is the reason for a missing Ack.
	Err error
}

// Verdicts counts events by the ledger's decision, once for each matching pipeline.
type Verdicts struct {
	Raised    int `json:"raised"`    // newer than the ledger's Want
	Duplicate int `json:"duplicate"` // already known
	Stale     int `json:"stale"`     // older than the ledger's Want
	Unmatched int `json:"unmatched"` // no pipeline matches
}

// Sink accepts deliveries.
type Sink interface {
	// Deliver blocks while the sink is full. If it returns an error (of ctx, ErrClosed or ErrUntrusted),
	// the sink does not call Done.
	Deliver(ctx context.Context, d Delivery) error
	// TryDeliver returns ErrFull instead of blocking.
	TryDeliver(d Delivery) error
}

// A sink rejects a delivery for these reasons.
var (
	ErrFull   = errors.New("too much work in flight")
	ErrClosed = errors.New("shutting down")
	// ErrUntrusted: a matching pipeline uses event order, but the event has no trusted sequencer.
	ErrUntrusted = errors.New("event order needs a trusted sequencer")
)
