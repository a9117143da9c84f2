package httpaction

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/action"
	"github.com/pawlhq/pawl/action/internal/actiontest"
)

type service struct {
	mu       sync.Mutex
	received []action.Facts
	failed   map[string]bool
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var f action.Facts
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.received = append(s.received, f)
	switch {
	case strings.HasPrefix(f.Key, "refused"):
		http.Error(w, "not mine", http.StatusUnprocessableEntity)
	case strings.HasPrefix(f.Key, "busy"):
		http.Error(w, "later", http.StatusServiceUnavailable)
	case strings.HasPrefix(f.Key, "once") && !s.failed[f.Key]:
		s.failed[f.Key] = true
		http.Error(w, "again", http.StatusInternalServerError)
	}
}

func (s *service) factsOf(key string) (facts []action.Facts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.received {
		if f.Key == key || string(f.KeyBase64) == key {
			facts = append(facts, f)
		}
	}
	return facts
}

func TestPipeline(t *testing.T) {
	s := &service{failed: map[string]bool{}}
	h := serve(t, Config{Secret: "x"}, s.ServeHTTP)
	w := actiontest.New(t, h)
	for _, key := range []string{"good", "refused", "busy", "once", "raw\xff"} {
		w.Put(key, "", []byte("content"))
	}
	w.RunWithoutOutput()
	for _, key := range []string{"good", "once", "raw\xff"} {
		w.Settled(key)
	}
	if got, want := w.Dead("refused", true), "s3://in/refused: POST "+h.redactedURL+": 422 Unprocessable Entity: not mine"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if got, want := w.Dead("busy", false), "s3://in/busy: POST "+h.redactedURL+": 503 Service Unavailable: later"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	counts := map[string]int{}
	for _, key := range []string{"good", "refused", "busy", "once", "raw\xff"} {
		counts[key] = len(s.factsOf(key))
	}
	if diff := cmp.Diff(map[string]int{"good": 1, "refused": 1, "busy": 3, "once": 2, "raw\xff": 1}, counts); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	twice := s.factsOf("once")
	if twice[0].IdempotencyKey != twice[1].IdempotencyKey || twice[0].Fence >= twice[1].Fence {
		t.Errorf("two attempts: %+v", twice)
	}

	w.Remove("good")
	w.RunWithoutOutput()
	w.Settled("good")
	facts := s.factsOf("good")
	if len(facts) != 2 || facts[1].Kind.String() != "removed" || facts[1].IdempotencyKey == facts[0].IdempotencyKey {
		t.Errorf("after the removal: %+v", facts)
	}
}
