package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/source"
)

// Messages counts what became of notifications.
type Messages struct {
	Sent       int `json:"sent"`         // copies that a worker acknowledged
	Doubled    int `json:"doubled"`      // notifications sent twice
	OutOfOrder int `json:"out_of_order"` // copies sent after a newer one about the same object
	Delayed    int `json:"delayed"`      // notifications held back for a while
	Dropped    int `json:"dropped"`      // notifications that were never sent
	Resent     int `json:"resent"`       // posts repeated because the one before was not acknowledged
}

// relay carries notifications from the store to the workers, as badly as real
// ones are carried. What is not dropped it delivers at least once: it posts
// again, to another worker, until one answers 200.
type relay struct {
	client  *http.Client
	token   string
	workers func() []string // webhooks of the workers that live

	ctx  context.Context // of everything under way
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	fates    map[string][]fate // by object, in the order of its changes
	newest   map[string]uint64 // by object: the newest change of which a copy went out
	turn     int               // whose turn it is among the workers
	counts   Messages
	verdicts source.Verdicts // of all that was acknowledged
	carried  int             // copies without an acknowledgement
	trouble  error           // why the last post was not acknowledged
}

// late is the delay from which on a notification counts as delayed: below, it is
// the network's everyday tardiness.
const late = 100 * time.Millisecond

// newRelay returns a relay that treats the notifications about the steps'
// changes as the steps say, and all others well.
func newRelay(token string, steps []step, workers func() []string) *relay {
	r := &relay{
		client: &http.Client{
			Timeout:   30 * time.Second,
			Transport: &http.Transport{MaxConnsPerHost: 16, MaxIdleConnsPerHost: 16},
		},
		token: token, workers: workers,
		fates: map[string][]fate{}, newest: map[string]uint64{},
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	for _, s := range steps {
		r.fates[s.key] = append(r.fates[s.key], s.fate)
	}
	return r
}

// expect says how the next notifications about an object are treated.
func (r *relay) expect(key string, fates ...fate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fates[key] = append(r.fates[key], fates...)
}

// close gives up what is under way, and returns when all of it has ended.
func (r *relay) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.wg.Wait()
	r.client.CloseIdleConnections()
}

// notify takes a notification about a change. It does not wait.
func (r *relay) notify(c change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	f := r.next(c.key)
	switch {
	case f.dropped:
		r.counts.Dropped++
		return
	case f.delay >= late:
		r.counts.Delayed++
	}
	delays := []time.Duration{f.delay}
	if f.again > 0 {
		r.counts.Doubled++
		delays = append(delays, f.delay+f.again)
	}
	for _, d := range delays {
		r.carried++
		r.wg.Go(func() { r.carry(c, d) })
	}
}

// next returns the fate of the next notification about an object.
func (r *relay) next(key string) fate {
	fates := r.fates[key]
	if len(fates) == 0 {
		return fate{}
	}
	r.fates[key] = fates[1:]
	return fates[0]
}

// carry brings one copy to a worker after a delay.
func (r *relay) carry(c change, delay time.Duration) {
	if process.Sleep(r.ctx, delay) != nil {
		return
	}
	r.note(func() {
		if c.order < r.newest[c.key] {
			r.counts.OutOfOrder++
		}
		r.newest[c.key] = max(r.newest[c.key], c.order)
	})
	verdicts, err := r.tell(c)
	r.note(func() {
		r.carried--
		if err != nil {
			r.trouble = err
			return
		}
		r.counts.Sent++
		v := &r.verdicts
		v.Raised += verdicts.Raised
		v.Duplicate += verdicts.Duplicate
		v.Stale += verdicts.Stale
		v.Unmatched += verdicts.Unmatched
	})
}

func (r *relay) tell(c change) (source.Verdicts, error) {
	payload, err := notification(c)
	if err != nil {
		return source.Verdicts{}, err
	}
	return r.deliver(r.ctx, payload)
}

// deliver posts until a worker acknowledges, or ctx ends.
func (r *relay) deliver(ctx context.Context, payload []byte) (source.Verdicts, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 20*time.Millisecond, time.Second
	return backoff.Retry(ctx, func() (source.Verdicts, error) { return r.post(ctx, payload) },
		backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) {
			r.note(func() {
				r.counts.Resent++
				r.trouble = err
			})
		}))
}

var errNobody = errors.New("no worker is up")

// post sends a notification to the worker whose turn it is.
func (r *relay) post(ctx context.Context, payload []byte) (v source.Verdicts, err error) {
	target, ok := r.worker()
	if !ok {
		return v, errNobody
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(payload))
	if err != nil {
		return v, backoff.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+r.token)
	res, err := r.client.Do(req)
	if err != nil {
		return v, err
	}
	defer func() { _ = res.Body.Close() }() // it was only read from
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		return v, err
	}
	if res.StatusCode != http.StatusOK {
		return v, fmt.Errorf("the worker answered %s: %s", res.Status, bytes.TrimSpace(answer))
	}
	return v, json.Unmarshal(answer, &v)
}

func (r *relay) worker() (webhook string, ok bool) {
	live := r.workers()
	if len(live) == 0 {
		return "", false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	return live[r.turn%len(live)], true
}

// open returns how many copies are under way, and why the last post failed that
// did.
func (r *relay) open() (copies int, trouble error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.carried, r.trouble
}

// counted returns the counts so far, and the sum of what the workers answered.
func (r *relay) counted() (Messages, source.Verdicts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts, r.verdicts
}

func (r *relay) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}
