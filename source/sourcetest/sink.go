// Package sourcetest holds what a source has to obey: [Test] runs the rules on
// one, and [Sink] is a sink whose test decides what becomes of a delivery.
package sourcetest

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/source"
)

// patience is how long a test waits for what has to happen.
const waitTimeout = 20 * time.Second

// Sink is a source.Sink with a given room. It is full when that many deliveries
// wait for the test to take them by [Sink.Next].
type Sink struct {
	deliveries chan source.Delivery
	closed     chan struct{}
	refused    chan struct{}
}

var _ source.Sink = (*Sink)(nil)

// NewSink makes a sink with room for so many deliveries. With none, a delivery
// is taken only while the test waits for it.
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

// Close makes the sink answer ErrClosed from now on. Call it once.
func (s *Sink) Close() { close(s.closed) }

// Next takes the next delivery.
func (s *Sink) Next(t testing.TB) source.Delivery {
	t.Helper()
	return Wait(t, s.deliveries, "a delivery")
}

// Refused waits until the sink was full or closed for a delivery.
func (s *Sink) Refused(t testing.TB) {
	t.Helper()
	Wait(t, s.refused, "a delivery that finds no room")
}

// Wait receives from c, or fails the test when nothing comes.
func Wait[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitTimeout):
		t.Fatalf("waited %s in vain for %s", waitTimeout, what)
	}
	var none T
	return none
}
