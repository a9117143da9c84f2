package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Handling describes what a relay does with one notification. The zero Handling sends one copy.
type Handling struct {
	Drop   bool
	Delay  time.Duration // before the first copy
	Repeat time.Duration // from the first copy to a second one; 0 means none
}

// DelayThreshold is the delay above which a notification counts as delayed.
const DelayThreshold = 100 * time.Millisecond

// Notice is a notification that a relay carries.
type Notice struct {
	Object event.Object
	Order  uint64 // increases with each change of the object
	Body   []byte
	Acked  func() // a worker has acknowledged a copy; may be nil
}

// Messages counts notifications.
type Messages struct {
	Sent       int `json:"sent"` // acknowledged copies
	Doubled    int `json:"doubled"`
	OutOfOrder int `json:"out_of_order"` // acknowledged after a newer copy about the same object
	Delayed    int `json:"delayed"`
	Dropped    int `json:"dropped"`
	Resent     int `json:"resent"` // unacknowledged attempts
}

// Relay sends each notification to random workers, in random order, until one acknowledges it.
type Relay struct {
	workers func() []string
	offer   func(ctx context.Context, body []byte, address string) error

	stop context.CancelFunc
	wg   sync.WaitGroup
	more chan struct{}

	mu      sync.Mutex
	closed  bool
	rng     *rand.Rand
	queue   []*Notice
	open    int // unacknowledged copies, including delayed ones
	newest  map[event.Object]uint64
	counts  Messages
	failure error
}

// Senders is the number of concurrent sends.
const Senders = 64

// NewRelay starts a relay to the addresses of workers. offer returns nil if a worker acknowledges a
// notification.
func NewRelay(seed uint64, workers func() []string, offer func(ctx context.Context, body []byte, address string) error) *Relay {
	r := &Relay{
		workers: workers, offer: offer, more: make(chan struct{}, 1),
		rng: rand.New(rand.NewPCG(seed, 1)), newest: map[event.Object]uint64{},
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	for range Senders {
		r.wg.Go(func() { r.send(ctx) })
	}
	return r
}

// Close drops all copies, and returns when all senders have ended.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.wg.Wait()
}

// Carry adds a notification without blocking.
func (r *Relay) Carry(n *Notice, h Handling) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return
	case h.Drop:
		r.counts.Dropped++
		return
	case h.Delay >= DelayThreshold:
		r.counts.Delayed++
	}
	r.add(n, h.Delay)
	if h.Repeat > 0 {
		r.counts.Doubled++
		r.add(n, h.Delay+h.Repeat)
	}
}

// The caller holds the lock.
func (r *Relay) add(n *Notice, delay time.Duration) {
	r.open++
	if delay == 0 {
		r.enqueue(n)
		return
	}
	time.AfterFunc(delay, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.closed {
			r.enqueue(n)
		}
	})
}

// enqueue adds a copy at a random position. The caller holds the lock.
func (r *Relay) enqueue(n *Notice) {
	r.queue = append(r.queue, n)
	i, last := r.rng.IntN(len(r.queue)), len(r.queue)-1
	r.queue[i], r.queue[last] = r.queue[last], r.queue[i]
	r.wake()
}

func (r *Relay) wake() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

var errNoWorker = errors.New("no worker is up")

func (r *Relay) pop() (n *Notice, address string) {
	workers := r.workers()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil, ""
	}
	if len(workers) == 0 {
		r.failure = errNoWorker
		return nil, ""
	}
	n, r.queue = r.queue[0], r.queue[1:]
	if len(r.queue) > 0 {
		r.wake()
	}
	return n, workers[r.rng.IntN(len(workers))]
}

func (r *Relay) send(ctx context.Context) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		more := r.more
		if n, address := r.pop(); n != nil {
			err := r.offer(ctx, n.Body, address)
			if r.sent(n, err); err == nil {
				continue
			}
			more = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-more:
		case <-again.C:
		}
	}
}

func (r *Relay) sent(n *Notice, err error) {
	if err == nil && n.Acked != nil {
		n.Acked()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.counts.Resent++
		r.failure = err
		r.enqueue(n)
		return
	}
	r.open--
	r.counts.Sent++
	if n.Order < r.newest[n.Object] {
		r.counts.OutOfOrder++
	}
	r.newest[n.Object] = max(r.newest[n.Object], n.Order)
}

// Open returns the number of unacknowledged copies, and the last error of an offer.
func (r *Relay) Open() (copies int, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open, r.failure
}

// Messages returns the counts so far.
func (r *Relay) Messages() Messages {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Post posts a notification to a webhook. Any status except 200 is an error.
func Post(ctx context.Context, client *http.Client, url, authorization string, body []byte) (answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", authorization)
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the worker answered %s: %s", res.Status, bytes.TrimSpace(answer))
	}
	return answer, err
}
