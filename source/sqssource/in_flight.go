package sqssource

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pawlhq/pawl/source"
)

// The times are guarded by inFlight.mu.
type message struct {
	id, handle  string
	receivedAt  time.Time
	hiddenUntil time.Time
	lost        bool          // not renewed any more
	delay       time.Duration // deleteMessage, or the delay until redelivery
}

const (
	deleteMessage time.Duration = -1
	releaseNow    time.Duration = 0
)

type inFlight struct {
	*Source
	sink     source.Sink
	stopping <-chan struct{}
	reached  atomic.Bool // the queue has responded
	slots    *semaphore.Weighted
	wake     chan struct{}

	mu         sync.Mutex
	unanswered map[*message]struct{}
	answers    []*message
	failed     []*message // not confirmed by the queue; sent again
}

func newInFlight(s *Source, sink source.Sink, ended <-chan struct{}) *inFlight {
	return &inFlight{
		Source: s, sink: sink, stopping: ended,
		slots: semaphore.NewWeighted(int64(s.limits.maxInFlight)), wake: make(chan struct{}, 1),
		unanswered: map[*message]struct{}{},
	}
}

// start returns a function that releases messages without an outcome, sends the others' answers, and stops the
// goroutines.
func (f *inFlight) start(ctx context.Context) (stop func()) {
	var renewals, answers sync.WaitGroup
	renewing, cancel := context.WithCancel(ctx)
	renewals.Go(func() { f.renew(renewing) })
	stopSending := make(chan struct{})
	answers.Go(func() { f.send(ctx, stopSending) })
	return func() {
		cancel()
		renewals.Wait() // no renewal may follow the release of a message
		f.releaseUnanswered()
		close(stopSending)
		answers.Wait()
	}
}

func (f *inFlight) waitForAnswers(ctx context.Context) {
	shutdownTimeout, cancel := context.WithTimeout(ctx, f.cfg.ShutdownTimeout)
	defer cancel()
	_ = f.slots.Acquire(shutdownTimeout, int64(f.limits.maxInFlight)) // the remaining messages are released
}

func (f *inFlight) releaseUnanswered() {
	f.mu.Lock()
	unanswered := slices.Collect(maps.Keys(f.unanswered))
	f.mu.Unlock()
	if len(unanswered) == 0 {
		return
	}
	f.cfg.Logger.Warn("released unacknowledged messages: the queue redelivers them", "queue", f.cfg.URL, "messages", len(unanswered))
	for _, m := range unanswered {
		f.queueAnswer(m, releaseNow)
	}
}

func (f *inFlight) add(m *message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unanswered[m] = struct{}{}
}

// drop sends no answer for the message.
func (f *inFlight) drop(m *message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unanswered, m)
	f.slots.Release(1)
}

// Only the first answer counts.
func (f *inFlight) queueAnswer(m *message, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.unanswered[m]; !ok {
		return
	}
	delete(f.unanswered, m)
	m.delay = delay
	f.answers = append(f.answers, m)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *inFlight) done(m *message, o source.Outcome) {
	if o.Ack {
		f.queueAnswer(m, deleteMessage)
		return
	}
	f.warnings.notAcknowledged.Log(context.Background(), "a message was not acknowledged and will be redelivered", "queue", f.cfg.URL,
		"message_id", m.id, "after", o.RetryAfter, "error", o.Err)
	delay := max(o.RetryAfter, releaseNow)
	select {
	case <-f.stopping:
	default:
		delay = max(delay, time.Second) // no tight redelivery loop
	}
	f.queueAnswer(m, delay)
}
