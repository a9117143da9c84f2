package e2e

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
)

// relay stands between a store's webhook and a worker that keeps dying. It
// takes every notification at once, doubles some, changes their order, and
// offers each until it is acknowledged, and never after that.
type relay struct {
	url    string // where the store posts to
	target string // where the worker listens
	auth   string

	mu      sync.Mutex
	rng     *rand.Rand
	queue   [][]byte
	flying  int
	acked   []event.Event
	doubled int
	more    chan struct{}
	wg      sync.WaitGroup
}

// newRelay starts a relay with a few senders, which end with the test.
func newRelay(t *testing.T, seed uint64, target, auth string) *relay {
	r := &relay{target: target, auth: auth, rng: rand.New(rand.NewPCG(seed, 1)), more: make(chan struct{}, 1)}
	srv := httptest.NewServer(http.HandlerFunc(r.take))
	r.url = srv.URL
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	for range 8 {
		r.wg.Go(func() { r.send(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		r.wg.Wait()
		srv.Close()
	})
	return r
}

func (r *relay) take(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil || req.Method != http.MethodPost {
		return
	}
	r.push(body)
	r.mu.Lock()
	twice := r.rng.IntN(20) == 0
	if twice {
		r.doubled++
	}
	r.mu.Unlock()
	if twice {
		r.push(body)
	}
}

// push puts a notification at a random place.
func (r *relay) push(body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, body)
	i := r.rng.IntN(len(r.queue))
	last := len(r.queue) - 1
	r.queue[i], r.queue[last] = r.queue[last], r.queue[i]
	r.wake()
}

func (r *relay) wake() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

func (r *relay) pop() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil
	}
	body := r.queue[0]
	r.queue = r.queue[1:]
	r.flying++
	if len(r.queue) > 0 {
		r.wake()
	}
	return body
}

func (r *relay) send(ctx context.Context) {
	client := &http.Client{Timeout: 10 * time.Second}
	for {
		body := r.pop()
		if body == nil {
			select {
			case <-ctx.Done():
				return
			case <-r.more:
			}
			continue
		}
		if r.offer(ctx, client, body) {
			r.note(body)
			continue
		}
		r.push(body)
		r.mu.Lock()
		r.flying--
		r.mu.Unlock()
		pause := time.NewTimer(50 * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// offer reports whether the worker acknowledged.
func (r *relay) offer(ctx context.Context, client *http.Client, body []byte) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.target, bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", r.auth)
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

// note remembers what was acknowledged.
func (r *relay) note(body []byte) {
	batch, err := event.Parse(body, event.Detect)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying--
	if err == nil {
		r.acked = append(r.acked, batch.Events...)
	}
}

// left returns how many notifications wait for their acknowledgement.
func (r *relay) left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue) + r.flying
}
