package sqssource

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/source"
)

// Run receives and delivers messages until ctx ends. Then it waits up to the shutdown timeout for outcomes,
// and releases the remaining messages for other consumers.
//
// Run returns an error if the queue does not exist or access is denied. After the first response of the
// queue, and for expired credentials, it retries instead. Run may be called once.
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

// check sends requests about a message that does not exist, so an error about that message is ignored. It
// retries during an outage.
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

func (s *Source) backOff(ctx context.Context, b *backoff.ExponentialBackOff, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	s.warnings.outage.Log(ctx, "the queue cannot be used; retrying", "error", s.explain(err))
	return process.Sleep(ctx, b.NextBackOff()) == nil
}
