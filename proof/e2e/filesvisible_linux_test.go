package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/proof/servertest"
)

const (
	// The 99th percentile of the time from a PUT until its file is visible.
	maxHidden = 500 * time.Millisecond
	pollEvery = 3 * time.Millisecond
)

// benchmarkVisible starts its times at the answer to the PUT. The metric "notified" is the arrival of MinIO's notification.
func benchmarkVisible(b *testing.B, index string) {
	hook := &arrivalRecorder{at: map[string]time.Time{}, arrived: sync.NewCond(&sync.Mutex{})}
	front := httptest.NewServer(hook)
	b.Cleanup(front.Close)
	server := servertest.MinIO(b, servertest.Options{Webhook: front.URL + "/events", Authorization: serveAuth, Direct: true})
	openSQLite(b, index)
	s := serve(b, server, index)
	hook.to = s.addresses()[0]
	server.Notify(b, inputs)
	c := s.client(b)
	var visible, notified latencies
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	polls := 0
	for b.Loop() {
		for n := range *fileRequests / 10 {
			c.Token = filesToken(b, fmt.Sprint("client-", n)) // each may send 100 requests at once
			body := fmt.Appendf(nil, "the bytes of file %d", n)
			signed, err := c.sign(b.Context(), album(n%10), fmt.Sprint("key-", n), body)
			if err != nil {
				b.Fatal(err)
			}
			if status, err := c.putOnce(b.Context(), signed.Upload, body); err != nil || status != http.StatusOK {
				b.Fatal(status, err)
			}
			began := time.Now()
			visible.add(b, func() error {
				for ; ; polls++ {
					f, err := c.Want(b.Context(), http.StatusOK, http.MethodGet, "/v1/files/"+signed.File.ID, nil, nil)
					if err != nil || f.State == "indexed" {
						return err
					}
					<-tick.C
				}
			})
			notified.took = append(notified.took, max(0, hook.wait(filePrefix+signed.File.ID).Sub(began)))
		}
	}
	visible.report(b, "visible", maxHidden)
	notified.report(b, "notified", 0)
	b.ReportMetric(float64(polls)/float64(len(visible.took)), "polls")
	reportLoad(b)
}

type arrivalRecorder struct {
	to      string
	arrived *sync.Cond
	at      map[string]time.Time
}

func (s *arrivalRecorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var n struct{ Key string }
	if err := json.Unmarshal(body, &n); err == nil && n.Key != "" {
		s.arrived.L.Lock()
		s.at[n.Key[len(inputs)+1:]] = now
		s.arrived.L.Unlock()
		s.arrived.Broadcast()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.to}).ServeHTTP(w, r)
}

func (s *arrivalRecorder) wait(key string) time.Time {
	s.arrived.L.Lock()
	defer s.arrived.L.Unlock()
	for s.at[key].IsZero() {
		s.arrived.Wait()
	}
	return s.at[key]
}
