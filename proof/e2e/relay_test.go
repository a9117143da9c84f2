//go:build unix

package e2e

import (
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
	"github.com/pawlhq/pawl/proof/rig"
)

// Percentages of notifications. The others are only reordered.
const (
	dropPercent   = 10
	doublePercent = 8
	delayPercent  = 8
)

const maxNotificationDelay = 2 * time.Second

type relay struct {
	*rig.Relay
	url  string
	seed uint64

	mu          sync.Mutex
	dropNothing bool
	objects     map[event.Object]*objectNotices
	acked       []event.Event
	outputs     [][]byte // about the output bucket; not forwarded
	// garbled by the store
	taken, garbled int
}

type objectNotices struct {
	notices uint64
	newest  event.Event // in the store's order
	lost    bool
}

type offer func(ctx context.Context, body []byte, address string) error

func newRelay(t *testing.T, seed uint64, workers func() []string, to offer) *relay {
	r := &relay{Relay: rig.NewRelay(seed, workers, to), seed: seed, objects: map[event.Object]*objectNotices{}}
	srv := httptest.NewServer(http.HandlerFunc(r.handle))
	r.url = srv.URL
	t.Cleanup(func() {
		r.Close()
		srv.Close()
	})
	return r
}

// The seed, the object and the notification's number determine the treatment.
func (r *relay) handle(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil || req.Method != http.MethodPost {
		return
	}
	batch, err := event.Parse(body, event.Detect)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil: // not valid in the store's own format
		r.garbled++
		return
	case len(batch.Events) == 0: // the worker decides
		r.Carry(&rig.Notice{Body: body}, rig.Handling{})
		return
	case batch.Events[0].Object.Bucket == outputs:
		r.outputs = append(r.outputs, body)
		return
	}
	e := batch.Events[0]
	r.taken++
	o := r.objects[e.Object]
	if o == nil {
		o = &objectNotices{}
		r.objects[e.Object] = o
	}
	o.notices++
	h := r.handling(e.Object.Key, o.notices)
	if o.notices == 1 || e.Sequencer.CompareSameKey(o.newest.Sequencer) > 0 {
		o.newest, o.lost = e, h.Drop
	}
	r.Carry(&rig.Notice{Object: e.Object, Order: o.notices, Body: body, Acked: func() { r.recordAcked(batch.Events) }}, h)
}

// The caller holds the lock.
func (r *relay) handling(key string, number uint64) rig.Handling {
	rng := rand.New(rand.NewPCG(r.seed, hash(key)+number))
	chance, wait := rng.IntN(100), time.Duration(rng.Int64N(int64(maxNotificationDelay)))
	switch {
	case chance < dropPercent && !r.dropNothing:
		return rig.Handling{Drop: true}
	case chance < dropPercent+doublePercent:
		return rig.Handling{Repeat: wait}
	case chance < dropPercent+doublePercent+delayPercent:
		return rig.Handling{Delay: wait}
	}
	return rig.Handling{}
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, s)
	return h.Sum64()
}

// A frozen worker blocks a sender until the timeout.
func poster(t *testing.T, auth string, timeout time.Duration) offer {
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{MaxIdleConnsPerHost: rig.Senders}}
	t.Cleanup(client.CloseIdleConnections)
	return func(ctx context.Context, body []byte, address string) error {
		_, err := rig.Post(ctx, client, "http://"+address+"/events", auth, body)
		return err
	}
}

func (r *relay) recordAcked(events []event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acked = append(r.acked, events...)
}

func (r *relay) markLost(lost []event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range lost {
		r.acked = slices.DeleteFunc(r.acked, func(a event.Event) bool {
			return a.Object == e.Object && a.Sequencer.CompareSameKey(e.Sequencer) == 0
		})
		if o := r.objects[e.Object]; o != nil && o.newest.Sequencer.CompareSameKey(e.Sequencer) == 0 {
			o.lost = true
		}
	}
}

func (r *relay) pending() int {
	n, _ := r.Open()
	return n
}

func (r *relay) received() (taken, garbled int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken, r.garbled
}

func (r *relay) lastWasDropped(object event.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[object]
	return o != nil && o.lost
}

func (r *relay) lastDropped() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.objects {
		if o.lost {
			n++
		}
	}
	return n
}

func (r *relay) aboutOutputs() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.outputs)
}

func (r *relay) hasSeen(object event.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[object] != nil
}
