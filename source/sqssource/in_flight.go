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

// message is a message that the queue has delivered. The times are guarded by inFlight.mu.
type message struct {
	id, handle  string
	receivedAt  time.Time
	hiddenUntil time.Time     // end of the visibility timeout
	lost        bool          // no longer renewed
	delay       time.Duration // the answer: deleteMessage, or the delay until redelivery
}

// Special values of message.delay.
const (
	deleteMessage time.Duration = -1
	releaseNow    time.Duration = 0
)

// inFlight has the messages without an outcome, and the answers that the queue has not confirmed.
type inFlight struct {
	*Source
	sink     source.Sink
	stopping <-chan struct{}     // closed when the source shuts down
	reached  atomic.Bool         // the queue has responded at least once
	slots    *semaphore.Weighted // one slot for each message in flight
	wake     chan struct{}       // signals new answers

	mu         sync.Mutex
	unanswered map[*message]struct{} // messages without an outcome
	answers    []*message            // to send
	failed     []*message            // to send again
}

func newInFlight(s *Source, sink source.Sink, ended <-chan struct{}) *inFlight {
	return &inFlight{
		Source: s, sink: sink, stopping: ended,
		slots: semaphore.NewWeighted(int64(s.limits.maxInFlight)), wake: make(chan struct{}, 1),
		unanswered: map[*message]struct{}{},
	}
}

// start starts the goroutines that renew messages and send answers. The returned function
// releases messages without an outcome, sends the remaining answers, and stops the goroutines.
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

// waitForAnswers waits up to the shutdown timeout until no message is in flight.
func (f *inFlight) waitForAnswers(ctx context.Context) {
	shutdownTimeout, cancel := context.WithTimeout(ctx, f.cfg.ShutdownTimeout)
	defer cancel()
	_ = f.slots.Acquire(shutdownTimeout, int64(f.limits.maxInFlight)) // after the shutdown timeout, the remaining messages are released
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

// drop forgets a message without an answer to the queue.
func (f *inFlight) drop(m *message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unanswered, m)
	f.slots.Release(1)
}

// queueAnswer sets the answer for a message. Only the first answer counts.
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
		delay = max(delay, time.Second) // avoids a tight redelivery loop
	}
	f.queueAnswer(m, delay)
}
