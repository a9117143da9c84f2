package replaysource

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
)

const (
	// maxInFlight bounds the unacknowledged events, and thus the memory. It permits one payload of the
	// maximum size.
	maxInFlight = event.MaxRecords
	// With a memory ledger, and in a program without sweeps, redelivery is the only retry. The limit ends a
	// replay even if the row of a payload stays unreadable.
	maxAttempts       = 10
	defaultRetryDelay = time.Second
	maxRetryDelay     = time.Minute
)

type delivery struct {
	events []event.Event
	at     position
	tries  int
	due    time.Time
	err    error
}

func (d *delivery) weight() int64 { return int64(len(d.events)) }

type inFlight struct {
	*Source
	sink source.Sink
	room *semaphore.Weighted
	// retries has a capacity for all deliveries in flight, because Done must not block.
	retries chan *delivery
	stop    context.CancelCauseFunc
}

func newInFlight(s *Source, sink source.Sink, stop context.CancelCauseFunc) *inFlight {
	return &inFlight{
		Source: s, sink: sink, stop: stop,
		room:    semaphore.NewWeighted(maxInFlight),
		retries: make(chan *delivery, maxInFlight),
	}
}

func (f *inFlight) deliver(ctx context.Context, d *delivery) error {
	if len(d.events) == 0 {
		f.count(func(p *Progress) { p.Acknowledged++ })
		return nil
	}
	if err := f.room.Acquire(ctx, d.weight()); err != nil {
		return err
	}
	if err := f.try(ctx, d); err != nil {
		f.room.Release(d.weight())
		return err
	}
	return nil
}

func (f *inFlight) try(ctx context.Context, d *delivery) error {
	d.tries++
	err := f.sink.Deliver(ctx, source.Delivery{
		Events:         d.events,
		Message:        source.Message{System: "replay"},
		TrustSequencer: f.cfg.TrustSequencer,
		Done:           func(o source.Outcome) { f.done(d, o) },
	})
	if errors.Is(err, source.ErrClosed) {
		return &DeliveryError{position: d.at, Tries: d.tries, Err: err}
	}
	return err
}

func (f *inFlight) done(d *delivery, o source.Outcome) {
	if !o.Ack {
		wait := o.RetryAfter
		if wait <= 0 {
			wait = defaultRetryDelay
		}
		d.due, d.err = time.Now().Add(min(wait, maxRetryDelay)), o.Err
		f.retries <- d
		return
	}
	f.count(func(p *Progress) {
		p.Acknowledged++
		p.Verdicts.Raised += o.Verdicts.Raised
		p.Verdicts.Duplicate += o.Verdicts.Duplicate
		p.Verdicts.Stale += o.Verdicts.Stale
		p.Verdicts.Unmatched += o.Verdicts.Unmatched
	})
	f.room.Release(d.weight())
}

func (f *inFlight) redeliver(ctx context.Context, drained <-chan struct{}) {
	for {
		select {
		case <-drained:
			return
		case d := <-f.retries:
			if err := f.retry(ctx, d); err != nil {
				f.stop(err)
				f.room.Release(d.weight())
			}
		}
	}
}

func (f *inFlight) retry(ctx context.Context, d *delivery) error {
	if d.tries >= maxAttempts {
		return &DeliveryError{position: d.at, Tries: d.tries, Err: d.err}
	}
	wait := time.NewTimer(time.Until(d.due))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	f.count(func(p *Progress) { p.Redelivered++ })
	return f.try(ctx, d)
}

// After ctx has ended, it waits for at most ShutdownTimeout, and then leaves the remaining deliveries to
// the sink.
func (f *inFlight) drain(ctx context.Context) {
	if f.room.Acquire(ctx, maxInFlight) == nil {
		return
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.cfg.ShutdownTimeout)
	defer cancel()
	if f.room.Acquire(grace, maxInFlight) != nil {
		f.cfg.Logger.Warn("the replay ended with unacknowledged deliveries: replay again (events that are already in the ledger have no effect)")
	}
}
