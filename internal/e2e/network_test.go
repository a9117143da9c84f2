package e2e

import (
	"bytes"
	"context"
	"io"
	"log"
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

// How many in a hundred changes of an output meet with which trouble.
const (
	held = 12
	lost = 2
)

// longestWrite is how long a change is held back at most. Added to the longest
// stop, it is less than the horizon.
const longestWrite = 1500 * time.Millisecond

// network stands between the workers and the store. It holds back some of the
// changes of outputs, and brings them to the store all the same when the worker
// has been killed or given up by then; and it loses the answers to some.
type network struct {
	url   string
	proxy *httputil.ReverseProxy

	mu         sync.Mutex
	rng        *rand.Rand
	held, lost int
}

func newNetwork(t *testing.T, seed uint64, endpoint string) *network {
	t.Helper()
	store, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{rng: rand.New(rand.NewPCG(seed, 3)), proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(store)
			r.Out.Host = r.In.Host // which is signed
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		ErrorLog:  log.New(io.Discard, "", 0), // senders that are killed
	}}
	srv := httptest.NewServer(n)
	t.Cleanup(srv.Close)
	n.url = srv.URL
	return n
}

// ServeHTTP implements [http.Handler].
func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wait, lose := n.fate(r)
	if wait > 0 {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // its sender did not get so far
		}
		r = r.Clone(context.WithoutCancel(r.Context()))
		r.Body = io.NopCloser(bytes.NewReader(body))
		w = struct{ http.ResponseWriter }{w} // which does not tell that the sender is gone
		<-time.After(wait)
	}
	if lose {
		n.proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // ends the connection
	}
	n.proxy.ServeHTTP(w, r)
}

func (n *network) fate(r *http.Request) (wait time.Duration, lose bool) {
	if r.Method != http.MethodPut && r.Method != http.MethodDelete || !strings.HasPrefix(r.URL.Path, "/"+outputs+"/") {
		return 0, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch chance := n.rng.IntN(100); {
	case chance < held:
		n.held++
		return time.Duration(1 + n.rng.Int64N(int64(longestWrite))), false
	case chance < held+lost:
		n.lost++
		return 0, true
	}
	return 0, false
}
