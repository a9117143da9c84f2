// Package source defines how notifications enter Pawl. A [Source] receives messages, parses them,
// and delivers their events to a [Sink]. It acknowledges a message only after the sink has
// reported its [Outcome].
package source

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Source receives messages until ctx ends or, if the source is finite, until it has no more
// messages. Run returns after all its goroutines have returned. It returns nil after an orderly
// shutdown.
type Source interface {
	Run(ctx context.Context, sink Sink) error
}

// Declarer is a Source that knows the dialect of its notifications in advance, and whether to
// trust their sequencers. Pipelines in event order need it.
type Declarer interface {
	Declares() (d event.Dialect, trustSequencer bool)
}

// Delivery is one message. Its events succeed or fail together.
type Delivery struct {
	Events []event.Event
	// TrustSequencer accepts the order of a dialect that is not trusted by default, because the
	// user vouches for the store.
	TrustSequencer bool
	// Done is called exactly once for each accepted delivery, from any goroutine. It must not
	// block. The sink may call it after the context of the source's Run has ended: Run waits for
	// it up to the source's shutdown timeout, and then acknowledges the message. A call after Run
	// has returned has no effect; the message is delivered again.
	Done func(Outcome)
}

// Outcome is the result of a delivery.
type Outcome struct {
	// Ack reports that the ledger has every event, or that no pipeline needs it. The message may
	// be deleted. Without Ack it must be delivered again.
	Ack bool
	// RetryAfter is the time to wait before a message without Ack is delivered again.
	RetryAfter time.Duration
	// Verdicts counts the events by the ledger's decision.
	Verdicts Verdicts
	// Err is the reason why Ack is false.
	Err error
}

// Verdicts counts events by the ledger's decision, once for each matching pipeline.
type Verdicts struct {
	Raised    int `json:"raised"`    // newer than the ledger's Want
	Duplicate int `json:"duplicate"` // known already
	Stale     int `json:"stale"`     // older than the ledger's Want
	Unmatched int `json:"unmatched"` // matched by no pipeline
}

// Sink accepts deliveries.
type Sink interface {
	// Deliver accepts d, and blocks while the sink is full. If it returns an error (the error of ctx,
	// ErrClosed or ErrUntrusted), the sink has not accepted d and does not call Done.
	Deliver(ctx context.Context, d Delivery) error
	// TryDeliver is Deliver without blocking: it returns ErrFull if the sink is full.
	TryDeliver(d Delivery) error
}

// Reasons for which a sink does not accept a delivery.
var (
	ErrFull   = errors.New("too much work in flight")
	ErrClosed = errors.New("shutting down")
	// ErrUntrusted is returned if a matching pipeline uses event order, but the event has no
	// trusted sequencer.
	ErrUntrusted = errors.New("event order needs a trusted sequencer")
)
