//go:build unix

package e2e

import (
	"bytes"
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
)

// How many in a hundred notifications meet with which fate. The others are
// carried well, but for the order.
const (
	dropped = 10
	doubled = 8
	delayed = 8
)

// longest is how long a notification, or the second copy of one, is held back
// at most.
const longest = 2 * time.Second

// relay stands between a store's webhook and workers that keep dying. It takes
// every notification at once, drops, doubles and delays some, changes the order
// of all, and offers each to a random worker until one acknowledges it, and
// never after that.
type relay struct {
	url     string // where the store posts to
	seed    uint64
	workers func() []string // where they listen
	offer   offer
	safe    bool // it drops nothing

	mu      sync.Mutex
	rng     *rand.Rand
	queue   []*notice
	open    int // notices without an acknowledgement, wherever they are
	objects map[event.Object]*heard
	acked   []event.Event
	outputs [][]byte // notifications about the other bucket, which are not passed on
	counts  carried
	more    chan struct{}
	wg      sync.WaitGroup
}

// notice is one copy of a notification.
type notice struct {
	body   []byte
	events []event.Event
	number int // which one about its object this is
}

// heard is what the relay knows of an object.
type heard struct {
	notices int
	sent    int         // the newest of which a copy was acknowledged
	newest  event.Event // by the store's own order
	spared  bool        // that one was dropped
}

// carried counts notifications, and for the order and the refusals copies.
type carried struct {
	taken, garbled             int
	dropped, doubled, delayed  int
	acked, outOfOrder, refused int
}

// senders are as many as the relay has.
const senders = 64

// offer brings a notification to an address, and reports whether it was
// acknowledged there.
type offer func(ctx context.Context, body []byte, address string) bool

// newRelay starts a relay with a few senders, which end with the test.
func newRelay(t *testing.T, seed uint64, workers func() []string, to offer) *relay {
	r := &relay{
		seed: seed, workers: workers, offer: to,
		rng: rand.New(rand.NewPCG(seed, 1)), objects: map[event.Object]*heard{}, more: make(chan struct{}, 1),
	}
	srv := httptest.NewServer(http.HandlerFunc(r.take))
	r.url = srv.URL
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	for range senders {
		r.wg.Go(func() { r.send(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		r.wg.Wait()
		srv.Close()
	})
	return r
}

// take decides what is to become of a notification. The seed repeats that for
// the first, second, third about an object, whenever they come.
func (r *relay) take(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil || req.Method != http.MethodPost {
		return
	}
	batch, err := event.Parse(body, event.Detect)
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &notice{body: body, events: batch.Events}
	switch {
	case err != nil: // not even the store's own
		r.counts.garbled++
		return
	case len(n.events) == 0: // of nothing that counts: for the worker to say so
		r.add(n)
		return
	case n.events[0].Object.Bucket == outputs:
		r.outputs = append(r.outputs, body)
		return
	}
	object := n.events[0].Object
	r.counts.taken++
	h := r.objects[object]
	if h == nil {
		h = &heard{}
		r.objects[object] = h
	}
	h.notices++
	n.number = h.notices
	fate := rand.New(rand.NewPCG(r.seed, hash(object.Key)+uint64(n.number)))
	chance, wait := fate.IntN(100), time.Duration(fate.Int64N(int64(longest)))
	drop := chance < dropped && !r.safe
	if e := n.events[0]; h.notices == 1 || e.Sequencer.CompareSameKey(h.newest.Sequencer) > 0 {
		h.newest, h.spared = e, drop
	}
	switch {
	case drop:
		r.counts.dropped++
	case chance < dropped+doubled:
		r.counts.doubled++
		r.add(n)
		r.addLater(n, wait)
	case chance < dropped+doubled+delayed:
		r.counts.delayed++
		r.addLater(n, wait)
	default:
		r.add(n)
	}
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, s) // never fails
	return h.Sum64()
}

// add and addLater need the lock.
func (r *relay) add(n *notice) {
	r.open++
	r.enqueue(n)
}

// addLater's timer may fire after the test: the queue is then no more than
// memory.
func (r *relay) addLater(n *notice, wait time.Duration) {
	r.open++
	time.AfterFunc(wait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.enqueue(n)
	})
}

// enqueue puts a notice at a random place.
func (r *relay) enqueue(n *notice) {
	r.queue = append(r.queue, n)
	i, last := r.rng.IntN(len(r.queue)), len(r.queue)-1
	r.queue[i], r.queue[last] = r.queue[last], r.queue[i]
	r.wake()
}

func (r *relay) wake() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// pop returns a notice and who is to have it, if there are both.
func (r *relay) pop() (n *notice, address string) {
	workers := r.workers()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 || len(workers) == 0 {
		return nil, ""
	}
	n, r.queue = r.queue[0], r.queue[1:]
	if len(r.queue) > 0 {
		r.wake()
	}
	return n, workers[r.rng.IntN(len(workers))]
}

func (r *relay) send(ctx context.Context) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		more := r.more
		if n, address := r.pop(); n != nil {
			if r.offer(ctx, n.body, address) {
				r.note(n)
				continue
			}
			r.mu.Lock()
			r.counts.refused++
			r.enqueue(n)
			r.mu.Unlock()
			more = nil // not at once
		}
		select {
		case <-ctx.Done():
			return
		case <-more:
		case <-again.C:
		}
	}
}

// poster posts to workers. One that sleeps keeps a sender waiting until its
// patience is over.
func poster(t *testing.T, auth string) offer {
	const patience = time.Second
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	t.Cleanup(client.CloseIdleConnections)
	return func(ctx context.Context, body []byte, address string) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/events", bytes.NewReader(body))
		if err != nil {
			return false
		}
		req.Header.Set("Authorization", auth)
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode == http.StatusOK
	}
}

// note remembers what was acknowledged.
func (r *relay) note(n *notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	r.counts.acked++
	r.acked = append(r.acked, n.events...)
	if len(n.events) == 0 {
		return
	}
	if h := r.objects[n.events[0].Object]; h != nil {
		if n.number < h.sent {
			r.counts.outOfOrder++
		}
		h.sent = max(h.sent, n.number)
	}
}

// forget takes events that were acknowledged for lost ones.
func (r *relay) forget(lost []event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range lost {
		r.acked = slices.DeleteFunc(r.acked, func(a event.Event) bool {
			return a.Object == e.Object && a.Sequencer.CompareSameKey(e.Sequencer) == 0
		})
		if h := r.objects[e.Object]; h != nil && h.newest.Sequencer.CompareSameKey(e.Sequencer) == 0 {
			h.spared = true
		}
	}
}

// left returns how many notices wait for their acknowledgement.
func (r *relay) left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// taken returns how many notifications have come.
func (r *relay) taken() int { return r.carried().taken }

// carried returns the counts so far. Notifications may still come.
func (r *relay) carried() carried {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// missing reports that nobody was told of an object's last change.
func (r *relay) missing(object event.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.objects[object]
	return h != nil && h.spared
}

// aboutOutputs returns the notifications about the other bucket.
func (r *relay) aboutOutputs() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.outputs)
}

// knows reports that the store has told of an object.
func (r *relay) knows(object event.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[object] != nil
}
