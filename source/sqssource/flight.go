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
	id, handle string
	since      time.Time     // of its receipt
	until      time.Time     // no other consumer gets it before
	lost       bool          // it is not renewed any more
	away       time.Duration // the answer, once there is one: forget, or it comes again after that
}

// Answers to a message, other than that it comes again after a while.
const (
	forget   time.Duration = -1
	giveBack time.Duration = 0
)

// flight holds the messages that are not answered, or whose answer has not reached
// the queue.
type flight struct {
	*Source
	sink     source.Sink
	ended    <-chan struct{}     // closed when the source is to end
	answered atomic.Bool         // the queue has, once
	room     *semaphore.Weighted // less one for each message in flight
	wake     chan struct{}       // there are answers to send

	mu      sync.Mutex
	held    map[*message]struct{} // without an answer
	answers []*message            // to be sent
	failed  []*message            // to be sent again
}

func newFlight(s *Source, sink source.Sink, ended <-chan struct{}) *flight {
	return &flight{
		Source: s, sink: sink, ended: ended,
		room: semaphore.NewWeighted(int64(s.limits.room)), wake: make(chan struct{}, 1),
		held: map[*message]struct{}{},
	}
}

// begin starts what messages in flight need. The returned function gives back what
// has no answer, sends the last answers, and ends it.
func (f *flight) begin(ctx context.Context) (end func()) {
	var renewals, answers sync.WaitGroup
	renewing, cancel := context.WithCancel(ctx)
	renewals.Go(func() { f.renew(renewing) })
	stop := make(chan struct{})
	answers.Go(func() { f.send(ctx, stop) })
	return func() {
		cancel()
		renewals.Wait() // none lands after a message was given back
		f.giveBackAll()
		close(stop)
		answers.Wait()
	}
}

// land waits until nothing is in flight, as long as the grace allows.
func (f *flight) land(ctx context.Context) {
	grace, cancel := context.WithTimeout(ctx, f.cfg.Grace)
	defer cancel()
	_ = f.room.Acquire(grace, int64(f.limits.room)) // the rest is given back
}

func (f *flight) giveBackAll() {
	f.mu.Lock()
	left := slices.Collect(maps.Keys(f.held))
	f.mu.Unlock()
	if len(left) == 0 {
		return
	}
	f.cfg.Logger.Warn("messages are given back unanswered: they come again", "queue", f.cfg.URL, "messages", len(left))
	for _, m := range left {
		f.answer(m, giveBack)
	}
}

func (f *flight) hold(m *message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[m] = struct{}{}
}

// leave lets go of a message without a word to the queue.
func (f *flight) leave(m *message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.held, m)
	f.room.Release(1)
}

// answer says what is to become of a message. Only the first answer counts.
func (f *flight) answer(m *message, away time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.held[m]; !ok {
		return
	}
	delete(f.held, m)
	m.away = away
	f.answers = append(f.answers, m)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// done is told what became of a delivery.
func (f *flight) done(m *message, o source.Outcome) {
	if o.Ack {
		f.answer(m, forget)
		return
	}
	f.log.open.Log(context.Background(), "a message was not acknowledged: it comes again", "queue", f.cfg.URL,
		"message_id", m.id, "after", o.RetryAfter, "error", o.Err)
	away := max(o.RetryAfter, giveBack)
	select {
	case <-f.ended:
	default:
		away = max(away, time.Second) // or it would go round and round
	}
	f.answer(m, away)
}
