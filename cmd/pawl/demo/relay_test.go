package demo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
)

// inbox is a worker's webhook that keeps what it acknowledges, and refuses as
// long as it is told to.
type inbox struct {
	*httptest.Server
	mu      sync.Mutex
	refuse  int
	arrived []string // keys and sequencers
}

func newInbox(t *testing.T, refuse int) *inbox {
	t.Helper()
	in := &inbox{refuse: refuse}
	in.Server = httptest.NewServer(in)
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in.mu.Lock()
	defer in.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	batch, perr := event.Parse(body, event.Detect)
	switch {
	case errors.Join(err, perr) != nil:
		http.Error(w, "bad", http.StatusBadRequest)
	case r.Header.Get("Authorization") != "Bearer secret":
		http.Error(w, "who?", http.StatusUnauthorized)
	case in.refuse > 0:
		in.refuse--
		http.Error(w, "busy", http.StatusTooManyRequests)
	default:
		e := batch.Events[0]
		in.arrived = append(in.arrived, e.Object.Key+" "+strings.TrimLeft(e.Sequencer.Raw(), "0"))
		_, _ = io.WriteString(w, `{"raised":1,"duplicate":2,"stale":3,"unmatched":0,"ignored":0}`)
	}
}

func (in *inbox) list() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.arrived)
}

// deliverAll returns when the relay has nothing under way.
func deliverAll(t *testing.T, r *relay) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := until(ctx, time.Millisecond, func() (bool, error) { n, _ := r.open(); return n == 0, nil }); err != nil {
		n, trouble := r.open()
		t.Fatalf("%d copies are under way, because of %v", n, trouble)
	}
}

func to(in ...*inbox) func() []string {
	return func() (urls []string) {
		for _, i := range in {
			urls = append(urls, i.URL)
		}
		return urls
	}
}

func about(key string, order uint64) change {
	return change{bucket: inputBucket, key: key, order: order, at: noon, etag: "e", size: 1}
}

func TestRelayFates(t *testing.T) {
	in := newInbox(t, 0)
	r := newRelay("secret", []step{
		{key: "k", fate: fate{delay: 300 * time.Millisecond}},
		{key: "k"},
		{key: "twice", fate: fate{again: time.Millisecond}},
		{key: "never", fate: fate{dropped: true}},
		{key: "never"},
	}, to(in))
	defer r.close()
	for i, key := range []string{"k", "k", "twice", "never", "never", "unplanned"} {
		r.notify(about(key, uint64(i+1)))
	}
	deliverAll(t, r)
	got := in.list()
	if i, j := slices.Index(got, "k 1"), slices.Index(got, "k 2"); i < j || j < 0 {
		t.Errorf("the delayed one did not come last: %q", got)
	}
	slices.Sort(got)
	if want := []string{"k 1", "k 2", "never 5", "twice 3", "twice 3", "unplanned 6"}; !slices.Equal(got, want) {
		t.Errorf("arrived: %q, want %q", got, want)
	}
	counts, verdicts := r.counted()
	if want := (Messages{Sent: 6, Doubled: 1, OutOfOrder: 1, Delayed: 1, Dropped: 1}); counts != want {
		t.Errorf("counted %+v, want %+v", counts, want)
	}
	if verdicts.Raised != 6 || verdicts.Duplicate != 12 || verdicts.Stale != 18 {
		t.Errorf("the answers sum up to %+v", verdicts)
	}
}

// TestRelayInsists posts until it is acknowledged: by the worker that is up, and
// even if that is busy.
func TestRelayInsists(t *testing.T) {
	dead, busy := newInbox(t, 0), newInbox(t, 3)
	dead.Close()
	r := newRelay("secret", nil, to(dead, busy))
	defer r.close()
	for i := range 10 {
		r.notify(about("k", uint64(i+1)))
	}
	deliverAll(t, r)
	if got := busy.list(); len(got) != 10 {
		t.Errorf("arrived: %q", got)
	}
	counts, _ := r.counted()
	if counts.Sent != 10 || counts.Resent < 3 {
		t.Errorf("counted %+v", counts)
	}
}

// TestRelayGivesUp: closing ends what nobody acknowledges, and takes nothing
// new.
func TestRelayGivesUp(t *testing.T) {
	for name, workers := range map[string]func() []string{
		"nobody is there": to(), "the token is wrong": to(newInbox(t, 0)),
	} {
		r := newRelay("wrong", nil, workers)
		r.notify(about("k", 1))
		var trouble error
		err := until(t.Context(), time.Millisecond, func() (bool, error) { _, trouble = r.open(); return trouble != nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		r.close()
		r.notify(about("k", 2))
		if counts, _ := r.counted(); counts.Sent != 0 {
			t.Errorf("%s: counted %+v", name, counts)
		}
	}
}
