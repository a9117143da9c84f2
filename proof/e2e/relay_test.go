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

// How many in a hundred notifications meet with each fault. The others are only
// reordered.
const (
	dropPercent   = 10
	doublePercent = 8
	delayPercent  = 8
)

// maxNotificationDelay bounds the delay of a notification or of its second copy.
const maxNotificationDelay = 2 * time.Second

// relay receives the notifications of a store, and carries them to workers that keep
// dying.
type relay struct {
	*rig.Relay
	url  string // the store posts to it
	seed uint64

	mu          sync.Mutex
	dropNothing bool // the relay drops nothing
	objects     map[event.Object]*objectNotices
	acked       []event.Event
	outputs     [][]byte // notifications about the other bucket, which are not passed on
	// taken counts notifications, garbled those that the store itself has garbled.
	taken, garbled int
}

// objectNotices is what the relay knows of an object.
type objectNotices struct {
	notices uint64
	newest  event.Event // by the store's own order
	lost    bool        // that one was dropped
}

// offer sends a notification to an address.
type offer func(ctx context.Context, body []byte, address string) error

// newRelay starts a relay, which ends with the test.
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

// handle decides how a notification is handled. The seed repeats that for the first,
// second and third notification about an object, whenever they come.
func (r *relay) handle(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil || req.Method != http.MethodPost {
		return
	}
	batch, err := event.Parse(body, event.Detect)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil: // not even the store's own
		r.garbled++
		return
	case len(batch.Events) == 0: // the worker decides about it
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

// handling draws the fault of a notification. The caller holds the lock.
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
	_, _ = io.WriteString(h, s) // never fails
	return h.Sum64()
}

// poster posts to workers. A stopped worker keeps a sender waiting until the timeout.
func poster(t *testing.T, auth string) offer {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: rig.Senders}}
	t.Cleanup(client.CloseIdleConnections)
	return func(ctx context.Context, body []byte, address string) error {
		_, err := rig.Post(ctx, client, "http://"+address+"/events", auth, body)
		return err
	}
}

// recordAcked remembers what was acknowledged.
func (r *relay) recordAcked(events []event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acked = append(r.acked, events...)
}

// markLost takes events that were acknowledged for lost ones.
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

// pending returns how many copies wait for their acknowledgement.
func (r *relay) pending() int {
	n, _ := r.Open()
	return n
}

// received returns how many notifications have come, and how many were garbled.
func (r *relay) received() (taken, garbled int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken, r.garbled
}

// lastWasDropped reports whether the notification of an object's last change was lost.
func (r *relay) lastWasDropped(object event.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[object]
	return o != nil && o.lost
}

// aboutOutputs returns the notifications about the other bucket.
func (r *relay) aboutOutputs() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.outputs)
}

// hasSeen reports whether a notification about the object has come.
func (r *relay) hasSeen(object event.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[object] != nil
}
