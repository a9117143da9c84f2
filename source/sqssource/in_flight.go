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

// message is one that the queue has handed out. Times are guarded by the flight's
// mu.
type message struct {
	id, handle  string
	receivedAt  time.Time     // of its receipt
	hiddenUntil time.Time     // no other consumer gets it before
	lost        bool          // it is not renewed any more
	delay       time.Duration // the answer, once there is one: forget, or it comes again after that
}

// Answers to a message, other than that it comes again after a while.
const (
	deleteMessage time.Duration = -1
	releaseNow    time.Duration = 0
)

// flight holds the messages that are not answered, or whose answer has not reached
// the queue.
type inFlight struct {
	*Source
	sink     source.Sink
	stopping <-chan struct{}     // closed when the source is to end
	reached  atomic.Bool         // the queue has, once
	slots    *semaphore.Weighted // less one for each message in flight
	wake     chan struct{}       // there are answers to send

	mu         sync.Mutex
	unanswered map[*message]struct{} // without an answer
	answers    []*message            // to be sent
	failed     []*message            // to be sent again
}

func newInFlight(s *Source, sink source.Sink, ended <-chan struct{}) *inFlight {
	return &inFlight{
		Source: s, sink: sink, stopping: ended,
		slots: semaphore.NewWeighted(int64(s.limits.maxInFlight)), wake: make(chan struct{}, 1),
		unanswered: map[*message]struct{}{},
	}
}

// begin starts what messages in flight need. The returned function gives back what
// has no answer, sends the last answers, and ends it.
func (f *inFlight) start(ctx context.Context) (stop func()) {
	var renewals, answers sync.WaitGroup
	renewing, cancel := context.WithCancel(ctx)
	renewals.Go(func() { f.renew(renewing) })
	stopSending := make(chan struct{})
	answers.Go(func() { f.send(ctx, stopSending) })
	return func() {
		cancel()
		renewals.Wait() // none lands after a message was given back
		f.releaseUnanswered()
		close(stopSending)
		answers.Wait()
	}
}

// land waits until nothing is in flight, as long as the grace allows.
func (f *inFlight) waitForAnswers(ctx context.Context) {
	grace, cancel := context.WithTimeout(ctx, f.cfg.ShutdownTimeout)
	defer cancel()
	_ = f.slots.Acquire(grace, int64(f.limits.maxInFlight)) // the rest is given back
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

// leave lets go of a message without a word to the queue.
func (f *inFlight) drop(m *message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unanswered, m)
	f.slots.Release(1)
}

// answer says what is to become of a message. Only the first answer counts.
func (f *inFlight) queueAnswer(m *message, away time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.unanswered[m]; !ok {
		return
	}
	delete(f.unanswered, m)
	m.delay = away
	f.answers = append(f.answers, m)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// done is told what became of a delivery.
func (f *inFlight) done(m *message, o source.Outcome) {
	if o.Ack {
		f.queueAnswer(m, deleteMessage)
		return
	}
	f.warnings.notAcknowledged.Log(context.Background(), "a message was not acknowledged and will be redelivered", "queue", f.cfg.URL,
		"message_id", m.id, "after", o.RetryAfter, "error", o.Err)
	away := max(o.RetryAfter, releaseNow)
	select {
	case <-f.stopping:
	default:
		away = max(away, time.Second) // or it would go round and round
	}
	f.queueAnswer(m, away)
}
