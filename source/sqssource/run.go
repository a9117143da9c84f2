package sqssource

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/source"
)

// Run receives messages and delivers what they say until ctx ends. Then it stops
// receiving, waits for the deliveries that the sink has, as long as the grace
// allows, and gives back what is left, so that another can have it at once.
//
// A queue that is not there, or may not be used, ends it with an error that says
// so. Once the queue has answered, whatever fails is an outage, as are expired
// credentials at any time: it is logged, and tried again. A source runs once.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if s.started.Swap(true) {
		return errors.New("sqs: Run was called twice: create a new source")
	}
	if err := s.check(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	s.cfg.Logger.Info("receiving notifications", "queue", s.cfg.URL)
	f := newInFlight(s, sink, ctx.Done())
	end := f.start(context.WithoutCancel(ctx))
	err := f.receive(ctx)
	f.waitForAnswers(context.WithoutCancel(ctx))
	end()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// check asks whether the queue is there, and whether messages may be deleted and
// kept: of a message that does not exist, so a complaint about that is no answer.
// During an outage it asks again.
func (s *Source) check(ctx context.Context) error {
	nothing := []*message{{handle: "none"}}
	for pause := newBackOff(); ; {
		_, err := s.delete(ctx, nothing)
		if classify(err) <= requestError {
			_, err = s.setVisibility(ctx, nothing, func(*message) time.Duration { return 0 })
		}
		switch classify(err) {
		case permanentError:
			return s.explain(err)
		case transientError:
			if s.backOff(ctx, pause, err) {
				continue
			}
		}
		return nil
	}
}

func newBackOff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.MaxInterval = 30 * time.Second
	return b
}

// pause waits before another try. It reports false when ctx has ended.
func (s *Source) backOff(ctx context.Context, b *backoff.ExponentialBackOff, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	s.warnings.outage.Log(ctx, "the queue cannot be used; retrying", "error", s.explain(err))
	return process.Sleep(ctx, b.NextBackOff()) == nil
}
