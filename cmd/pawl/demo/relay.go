package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/rig"
	"github.com/pawlhq/pawl/source"
)

type relay struct {
	*rig.Relay
	client *http.Client
	token  string

	mu       sync.Mutex
	plan     map[string][]rig.Handling // by object key, in the order of the changes
	verdicts source.Verdicts           // sum over all acknowledgements
}

// newRelay returns a relay that handles unexpected notifications without faults.
func newRelay(seed uint64, token string, workers func() []string) *relay {
	r := &relay{
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: rig.Senders}},
		token:  token, plan: map[string][]rig.Handling{},
	}
	r.Relay = rig.NewRelay(seed, workers, r.post)
	return r
}

func (r *relay) expect(key string, next ...rig.Handling) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan[key] = append(r.plan[key], next...)
}

// close drops all copies that are not sent yet, and waits for the others.
func (r *relay) close() {
	r.Close()
	r.client.CloseIdleConnections()
}

// notify does not block.
func (r *relay) notify(c change) {
	r.Carry(&rig.Notice{Object: event.Object{Bucket: c.bucket, Key: c.key}, Order: c.order, Body: notification(c)}, r.next(c.key))
}

func (r *relay) next(key string) (h rig.Handling) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if plan := r.plan[key]; len(plan) > 0 {
		h, r.plan[key] = plan[0], plan[1:]
	}
	return h
}

func (r *relay) post(ctx context.Context, body []byte, webhook string) error {
	answer, err := rig.Post(ctx, r.client, webhook, "Bearer "+r.token, body)
	if err != nil {
		return err
	}
	var v source.Verdicts
	if err := json.Unmarshal(answer, &v); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verdicts.Duplicate += v.Duplicate
	r.verdicts.Stale += v.Stale
	return nil
}

func (r *relay) rejected() (duplicates, stale int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verdicts.Duplicate, r.verdicts.Stale
}
