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
const headDelayPercent = 5

// How many in a hundred changes of an output meet with which trouble.
const (
	writeDelayPercent = 8 // it arrives late
	writeAbortPercent = 4 // it arrives late, and its sender is told at once that the connection is broken
	answerLossPercent = 2 // it arrives, and its answer does not
)

// A change is held back for so long: about as long as it takes another worker to
// come in between. Added to the longest stop, it is less than the horizon.
const (
	minWriteDelay = time.Second
	maxWriteDelay = 3 * time.Second
)

// network stands between the workers and the store. What it holds back it brings
// to the store all the same when the worker has been killed or given up by then.
type network struct {
	url         string
	headBucket  string // bucket whose HEADs may be held back
	writeBucket string // bucket whose changes meet with trouble
	proxy       *httputil.ReverseProxy
	wg          sync.WaitGroup // of torn requests

	mu                                                                      sync.Mutex
	rng                                                                     *rand.Rand
	delayedHeads, delayedWrites, abortedWrites, lostAnswers, rejectedWrites int
	inFlight                                                                int             // changes that the store has not answered
	aborted                                                                 map[string]bool // paths of changes whose sender went away meanwhile
}

func newNetwork(t *testing.T, seed uint64, endpoint string) *network {
	t.Helper()
	store, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{headBucket: inputs, writeBucket: outputs, aborted: map[string]bool{}, rng: rand.New(rand.NewPCG(seed, 3)), proxy: &httputil.ReverseProxy{
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
	chance, wait := n.rng.IntN(100), minWriteDelay+time.Duration(n.rng.Int64N(int64(maxWriteDelay-minWriteDelay)))
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
	case chance < writeDelayPercent:
		n.count(&n.delayedWrites)
		n.forwardLater(w, r, wait)
	case chance < writeDelayPercent+writeAbortPercent:
		n.count(&n.abortedWrites)
		r = detached(r)
		n.count(&n.inFlight)
		n.wg.Go(func() {
			defer n.writeDone()
			n.sendAfter(r, wait)
		})
		panic(http.ErrAbortHandler) // ends the connection
	case chance < writeDelayPercent+writeAbortPercent+answerLossPercent:
		n.count(&n.lostAnswers)
		n.proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		n.proxy.ServeHTTP(w, r)
	}
}

// forwardLater brings a request to the store later, and its answer to its sender, if that
// is still there.
func (n *network) forwardLater(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	answer := n.sendAfter(detached(r), wait)
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

// writeDone says that the store has answered a change, or will never hear of it.
func (n *network) writeDone() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inFlight--
}

// idle reports that no change is on its way to the store.
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

// wasAborted reports that the sender of a change went away before its answer came. The
// store may have made the change, and tells of it or does not.
func (n *network) wasAborted(bucket, key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.aborted["/"+bucket+"/"+key]
}
