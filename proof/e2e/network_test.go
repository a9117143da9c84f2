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

// How many in a hundred looks at an input are held back before they come to the
// store: what they see is then newer than what a worker that took over has seen.
const looks = 5

// How many in a hundred changes of an output meet with which trouble.
const (
	held = 8 // it arrives late
	torn = 4 // it arrives late, and its sender is told at once that the connection is broken
	lost = 2 // it arrives, and its answer does not
)

// A change is held back for so long: about as long as it takes another worker to
// come in between. Added to the longest stop, it is less than the horizon.
const (
	shortestHold = time.Second
	longestHold  = 3 * time.Second
)

// network stands between the workers and the store. What it holds back it brings
// to the store all the same when the worker has been killed or given up by then.
type network struct {
	url     string
	looked  string // bucket whose HEADs may be held back
	changed string // bucket whose changes meet with trouble
	proxy   *httputil.ReverseProxy
	wg      sync.WaitGroup // of torn requests

	mu                               sync.Mutex
	rng                              *rand.Rand
	looks, held, torn, lost, refused int
	flying                           int             // changes that the store has not answered
	broken                           map[string]bool // paths of changes whose sender went away meanwhile
}

func newNetwork(t *testing.T, seed uint64, endpoint string) *network {
	t.Helper()
	store, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{looked: inputs, changed: outputs, broken: map[string]bool{}, rng: rand.New(rand.NewPCG(seed, 3)), proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(store)
			r.Out.Host = r.In.Host // which is signed
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		ErrorLog:  log.New(io.Discard, "", 0), // senders that are killed
	}}
	srv := httptest.NewServer(n)
	t.Cleanup(func() {
		n.wg.Wait()
		srv.Close()
	})
	n.url = srv.URL
	return n
}

// ServeHTTP implements [http.Handler].
func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	chance, wait := n.rng.IntN(100), shortestHold+time.Duration(n.rng.Int64N(int64(longestHold-shortestHold)))
	n.mu.Unlock()
	look := r.Method == http.MethodHead && strings.HasPrefix(r.URL.Path, "/"+n.looked+"/")
	change := (r.Method == http.MethodPut || r.Method == http.MethodPost || r.Method == http.MethodDelete) && strings.HasPrefix(r.URL.Path, "/"+n.changed+"/")
	if change {
		n.count(&n.flying)
		defer func() {
			n.landed()
			if r.Context().Err() != nil {
				n.breaks(r.URL.Path)
			}
		}()
	}
	switch {
	case look && chance < looks:
		n.count(&n.looks)
		n.pass(w, r, wait)
	case !change:
		n.proxy.ServeHTTP(w, r)
	case chance < held:
		n.count(&n.held)
		n.pass(w, r, wait)
	case chance < held+torn:
		n.count(&n.torn)
		r = detached(r)
		n.count(&n.flying)
		n.wg.Go(func() {
			defer n.landed()
			n.later(r, wait)
		})
		panic(http.ErrAbortHandler) // ends the connection
	case chance < held+torn+lost:
		n.count(&n.lost)
		n.proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		n.proxy.ServeHTTP(w, r)
	}
}

// pass brings a request to the store later, and its answer to its sender, if that
// is still there.
func (n *network) pass(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	answer := n.later(detached(r), wait)
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(w)
}

// detached is a request that arrives whatever becomes of its sender.
func detached(r *http.Request) *http.Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // its sender did not get so far
	}
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

func (n *network) later(r *http.Request, wait time.Duration) *httptest.ResponseRecorder {
	<-time.After(wait)
	answer := httptest.NewRecorder()
	n.proxy.ServeHTTP(answer, r)
	if answer.Code == http.StatusPreconditionFailed {
		n.count(&n.refused)
	}
	return answer
}

func (n *network) count(what *int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*what++
}

// landed says that the store has answered a change, or will never hear of it.
func (n *network) landed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flying--
}

// still reports that no change is on its way to the store.
func (n *network) still() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.flying == 0
}

func (n *network) breaks(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken[path] = true
}

// broke reports that the sender of a change went away before its answer came. The
// store may have made the change, and tells of it or does not.
func (n *network) broke(bucket, key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.broken["/"+bucket+"/"+key]
}
