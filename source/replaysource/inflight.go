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
	// maxInFlight bounds the events read and not yet acknowledged, and so
	// the memory. One payload of the largest size fits.
	maxInFlight = event.MaxRecords
	// maxTries is how often a payload is delivered. Redelivery is the only retry over a
	// ledger in memory and in a program that never sweeps. The bound ends a replay whose
	// payload names a row that cannot be read.
	maxAttempts = 10
	// How long to wait before another try: where the sink does not say, and
	// at most.
	defaultRetryDelay = time.Second
	maxRetryDelay     = time.Minute
)

// delivery is one payload on its way.
type delivery struct {
	events []event.Event
	at     position
	tries  int
	due    time.Time // of the next try
	err    error     // of the last try
}

func (d *delivery) weight() int64 { return int64(len(d.events)) }

// flight is what was read and is not acknowledged yet.
type inFlight struct {
	*Source
	sink source.Sink
	room *semaphore.Weighted
	// again has room for everything in flight: Done must not block.
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

// deliver hands d to the sink, when there is room for it.
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
		TrustSequencer: f.cfg.TrustSequencer,
		Done:           func(o source.Outcome) { f.done(d, o) },
	})
	if errors.Is(err, source.ErrClosed) {
		return &DeliveryError{position: d.at, Tries: d.tries, Err: err}
	}
	return err
}

// done is told what became of d.
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

// redeliver delivers again what was not acknowledged, until all has landed.
// What cannot be delivered again stops the replay.
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

// land waits until nothing is in flight, or, when ctx has ended, as long as the
// grace allows. Deliveries that are still in flight then are left to the sink.
func (f *inFlight) drain(ctx context.Context) {
	if f.room.Acquire(ctx, maxInFlight) == nil {
		return
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.cfg.ShutdownTimeout)
	defer cancel()
	if f.room.Acquire(grace, maxInFlight) != nil {
		f.cfg.Logger.Warn("the replay ended with unacknowledged deliveries: replay again, events that the ledger knows already have no effect")
	}
}
