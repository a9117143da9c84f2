//go:build unix

package e2e

import (
	"bytes"
	"context"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// A delayed HEAD returns a newer version than the worker that took over has seen.
const headDelayPercent = 5

// Percentages of output writes with each fault.
const (
	writeDelayPercent = 8 // the write arrives late
	writeAbortPercent = 4 // the write arrives late, and its sender's connection is closed at once
	answerLossPercent = 2 // the write arrives, but its answer is lost
)

// Bounds of a write's delay. Another worker can take over meanwhile. The delay plus the longest
// freeze is below the horizon.
const (
	minWriteDelay = time.Second
	maxWriteDelay = 3 * time.Second
)

// network forwards delayed requests even if the worker was killed or has timed out.
type network struct {
	url         string
	headBucket  string // its HEAD requests may be delayed
	writeBucket string // its writes may have faults
	proxy       *httputil.ReverseProxy
	wg          sync.WaitGroup

	mu                                                                      sync.Mutex
	delay, abort                                                            int // percentages; see the constants
	rng                                                                     *rand.Rand
	delayedHeads, delayedWrites, abortedWrites, lostAnswers, rejectedWrites int
	inFlight                                                                int
	aborted                                                                 map[string]bool
}

func newNetwork(t *testing.T, seed uint64, endpoint string) *network {
	t.Helper()
	store, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{delay: writeDelayPercent, abort: writeAbortPercent, headBucket: inputs, writeBucket: outputs, aborted: map[string]bool{}, rng: rand.New(rand.NewPCG(seed, 3)), proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(store)
			r.Out.Host = r.In.Host // because it is signed
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		ErrorLog:  log.New(io.Discard, "", 0), // killed senders
	}}
	srv := httptest.NewServer(n)
	t.Cleanup(func() {
		n.wg.Wait()
		srv.Close()
	})
	n.url = srv.URL
	return n
}

func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	chance, wait := n.rng.IntN(100), minWriteDelay+time.Duration(n.rng.Int64N(int64(maxWriteDelay-minWriteDelay)))
	delay, abort := n.delay, n.abort
	n.mu.Unlock()
	look := r.Method == http.MethodHead && strings.HasPrefix(r.URL.Path, "/"+n.headBucket+"/")
	change := (r.Method == http.MethodPut || r.Method == http.MethodPost || r.Method == http.MethodDelete) && strings.HasPrefix(r.URL.Path, "/"+n.writeBucket+"/")
	if change {
		n.count(&n.inFlight)
		defer func() {
			n.writeDone()
			if r.Context().Err() != nil {
				n.markAborted(r.URL.Path)
			}
		}()
	}
	switch {
	case look && chance < headDelayPercent:
		n.count(&n.delayedHeads)
		n.forwardLater(w, r, wait)
	case !change:
		n.proxy.ServeHTTP(w, r)
	case chance < delay:
		n.count(&n.delayedWrites)
		n.forwardLater(w, r, wait)
	case chance < delay+abort:
		n.count(&n.abortedWrites)
		r = detached(r)
		n.count(&n.inFlight)
		n.wg.Go(func() {
			defer n.writeDone()
			n.sendAfter(r, wait)
		})
		panic(http.ErrAbortHandler) // closes the connection
	case chance < delay+abort+answerLossPercent:
		n.count(&n.lostAnswers)
		n.proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		n.proxy.ServeHTTP(w, r)
	}
}

// The sender may be gone when the answer arrives.
func (n *network) forwardLater(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	answer := n.sendAfter(detached(r), wait)
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(w)
}

func detached(r *http.Request) *http.Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

func (n *network) sendAfter(r *http.Request, wait time.Duration) *httptest.ResponseRecorder {
	<-time.After(wait)
	answer := httptest.NewRecorder()
	n.proxy.ServeHTTP(answer, r)
	if answer.Code == http.StatusPreconditionFailed {
		n.count(&n.rejectedWrites)
	}
	return answer
}

func (n *network) count(what *int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*what++
}

// lateWrites raises the percentages, for a round with few writes.
func (n *network) lateWrites(delay, abort int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay, n.abort = delay, abort
}

func (n *network) rejected() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rejectedWrites
}

func (n *network) writeDone() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inFlight--
}

func (n *network) idle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inFlight == 0
}

func (n *network) markAborted(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.aborted[path] = true
}

// The store may or may not have executed and announced an aborted write.
func (n *network) wasAborted(bucket, key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.aborted["/"+bucket+"/"+key]
}
