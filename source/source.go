// Package source brings notifications in. A [Source] reads messages from
// somewhere, parses them and hands them to a [Sink]; it acknowledges a message
// only when the sink has said what became of it.
package source

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Source reads messages until ctx ends or, for a finite source, until it has
// none left. Run returns only when everything it started has ended, and nil
// for an orderly end.
type Source interface {
	Run(ctx context.Context, sink Sink) error
}

// Declarer is a Source that knows beforehand which dialect it will bring, and
// whether its sequencer is to be trusted. Pipelines that go by event order need
// one.
type Declarer interface {
	Declares() (d event.Dialect, trustSequencer bool)
}

// Delivery is one message: all its events succeed or fail together.
type Delivery struct {
	Events []event.Event
	// TrustSequencer: believe the order of a dialect that is not trusted by
	// default, because whoever set the source up vouches for the store.
	TrustSequencer bool
	// Done is called exactly once for a delivery that the sink took, from
	// any goroutine, and must not block. The call may come after the context
	// of the source's Run has ended, because the sink finishes what it has:
	// Run waits for it, as long as the source's grace allows, and
	// acknowledges the message. It may even come after Run has returned,
	// and then is of no effect: the message comes again.
	Done func(Outcome)
}

// Outcome is what became of a delivery.
type Outcome struct {
	// Ack: every event is safe in the ledger, or needs nothing. The message
	// may be forgotten. Otherwise it must come again.
	Ack bool
	// RetryAfter is when a message that was not acknowledged is worth
	// delivering again.
	RetryAfter time.Duration
	// Verdicts counts the events by what the ledger said of them.
	Verdicts Verdicts
	// Err says why a delivery was not acknowledged.
	Err error
}

// Verdicts counts events by the ledger's answer, once for every pipeline that
// an event matches.
type Verdicts struct {
	Raised    int `json:"raised"`    // news
	Duplicate int `json:"duplicate"` // heard before
	Stale     int `json:"stale"`     // older than what was heard before
	Unmatched int `json:"unmatched"` // no pipeline wants it
}

// Sink takes deliveries.
type Sink interface {
	// Deliver hands d over, waiting while the sink is full. An error (ctx's,
	// or ErrClosed) means that the sink did not take it: Done is not called.
	Deliver(ctx context.Context, d Delivery) error
	// TryDeliver is Deliver that answers ErrFull instead of waiting.
	TryDeliver(d Delivery) error
}

// Why a sink did not take a delivery.
var (
	ErrFull   = errors.New("too much work in flight")
	ErrClosed = errors.New("shutting down")
	// ErrUntrusted: a pipeline goes by event order, and the event's dialect
	// has no sequencer that can be trusted.
	ErrUntrusted = errors.New("event order needs a trusted sequencer")
)
