package rig_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/proof/rig"
)

// inbox is a worker that rejects the first few offers.
type inbox struct {
	mu      sync.Mutex
	reject  int
	arrived []string
}

var errBusy = errors.New("busy")

func (in *inbox) offer(_ context.Context, body []byte, address string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if address != "up" || in.reject > 0 {
		in.reject--
		return errBusy
	}
	in.arrived = append(in.arrived, string(body))
	return nil
}

func addresses(all ...string) func() []string { return func() []string { return all } }

func notice(key string, order uint64) *rig.Notice {
	return &rig.Notice{Object: event.Object{Bucket: "b", Key: key}, Order: order, Body: []byte(key + strings.Repeat("'", int(order)))}
}

func TestRelayHandlesNotificationsAsPlanned(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		in := &inbox{}
		r := rig.NewRelay(1, addresses("up"), in.offer)
		defer r.Close()
		acked := 0
		late := notice("k", 1)
		late.Acked = func() { acked++ }
		in.mu.Lock() // no copy is acknowledged before all are counted
		r.Carry(late, rig.Handling{Delay: 300 * time.Millisecond})
		r.Carry(notice("k", 2), rig.Handling{})
		r.Carry(notice("twice", 1), rig.Handling{Repeat: time.Millisecond})
		r.Carry(notice("never", 1), rig.Handling{Drop: true})
		if n, _ := r.Open(); n != 4 {
			t.Errorf("%d copies are open, want 4", n)
		}
		in.mu.Unlock()
		time.Sleep(time.Second)
		if n, err := r.Open(); n != 0 || err != nil {
			t.Errorf("%d copies are open (%v), want none", n, err)
		}
		if i, j := slices.Index(in.arrived, "k'"), slices.Index(in.arrived, "k''"); i < j || j < 0 {
			t.Errorf("the delayed notification did not come last: %q", in.arrived)
		}
		slices.Sort(in.arrived)
		if want := []string{"k'", "k''", "twice'", "twice'"}; !slices.Equal(in.arrived, want) {
			t.Errorf("arrived: %q, want %q", in.arrived, want)
		}
		if got, want := r.Messages(), (rig.Messages{Sent: 4, Doubled: 1, OutOfOrder: 1, Delayed: 1, Dropped: 1}); got != want || acked != 1 {
			t.Errorf("counted %+v, want %+v; %d acknowledged", got, want, acked)
		}
	})
}

func TestRelayRetries(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		in := &inbox{reject: 3}
		r := rig.NewRelay(1, addresses("down", "up"), in.offer)
		defer r.Close()
		for i := range 10 {
			r.Carry(notice("k", uint64(i+1)), rig.Handling{})
		}
		time.Sleep(time.Minute)
		if got := r.Messages(); len(in.arrived) != 10 || got.Sent != 10 || got.Resent < 3 {
			t.Errorf("arrived: %q; counted %+v", in.arrived, got)
		}
	})
}

func TestClosedRelay(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		for name, workers := range map[string]func() []string{"no worker": addresses(), "a worker that is down": addresses("down")} {
			in := &inbox{}
			r := rig.NewRelay(1, workers, in.offer)
			r.Carry(notice("k", 1), rig.Handling{})
			time.Sleep(time.Second)
			if n, err := r.Open(); n != 1 || err == nil {
				t.Errorf("%s: %d copies are open (%v), want one and an error", name, n, err)
			}
			r.Close()
			r.Carry(notice("k", 2), rig.Handling{})
			if n, _ := r.Open(); n != 1 || r.Messages().Sent != 0 {
				t.Errorf("%s: %d copies are open, want 1; counted %+v", name, n, r.Messages())
			}
		}
	})
}

func TestPostWantsAnAcknowledgement(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "unknown client", http.StatusUnauthorized)
		}
	}))
	defer s.Close()
	if _, err := rig.Post(t.Context(), s.Client(), s.URL, "Bearer secret", nil); err != nil {
		t.Error(err)
	}
	if _, err := rig.Post(t.Context(), s.Client(), s.URL, "Bearer wrong", nil); err == nil || !strings.Contains(err.Error(), "unknown client") {
		t.Errorf("got %v", err)
	}
}
