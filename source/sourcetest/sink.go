// Package sourcetest is the conformance suite for sources. [Test] runs it, and [Sink] is a sink
// whose deliveries the test controls.
package sourcetest

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/source"
)

const waitTimeout = 2 * time.Minute

// Sink is a [source.Sink] with a fixed capacity. Deliveries occupy it until [Sink.Next] returns them.
type Sink struct {
	deliveries chan source.Delivery
	closed     chan struct{}
	refused    chan struct{}
}

var _ source.Sink = (*Sink)(nil)

// NewSink returns a sink with capacity for room deliveries. With 0, it accepts one only during [Sink.Next].
func NewSink(room int) *Sink {
	return &Sink{
		deliveries: make(chan source.Delivery, room),
		closed:     make(chan struct{}),
		refused:    make(chan struct{}, 1),
	}
}

// Deliver implements source.Sink.
func (s *Sink) Deliver(ctx context.Context, d source.Delivery) error {
	err := s.TryDeliver(d)
	if err != source.ErrFull {
		return err
	}
	select {
	case s.deliveries <- d:
		return nil
	case <-s.closed:
		return source.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryDeliver implements source.Sink.
func (s *Sink) TryDeliver(d source.Delivery) error {
	select {
	case <-s.closed:
		s.noteRefusal()
		return source.ErrClosed
	default:
	}
	select {
	case s.deliveries <- d:
		return nil
	default:
		s.noteRefusal()
		return source.ErrFull
	}
}

func (s *Sink) noteRefusal() {
	select {
	case s.refused <- struct{}{}:
	default:
	}
}

// Close makes the sink return ErrClosed. Call it once.
func (s *Sink) Close() { close(s.closed) }

// Next returns the next delivery.
func (s *Sink) Next(t testing.TB) source.Delivery {
	t.Helper()
	return Wait(t, s.deliveries, "a delivery")
}

// Refused waits until the sink has refused a delivery.
func (s *Sink) Refused(t testing.TB) {
	t.Helper()
	Wait(t, s.refused, "a refused delivery")
}

// Wait receives from c, and fails the test after two minutes.
func Wait[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitTimeout):
		t.Fatalf("waited %s for %s", waitTimeout, what)
	}
	var none T
	return none
}
