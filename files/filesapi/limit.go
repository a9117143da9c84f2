package filesapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

type limit struct {
	rate    *rate.Limiter
	streams atomic.Int32
	spooled int64         // bytes on disk; guarded by server.spooling
	lists   chan struct{} // one element for each list in progress
}

// Each of a subject's maxStreams concurrent POST /v1/files requests needs disk space.
const maxStreams = 4

// Each of a subject's maxLists concurrent lists signs up to 1,000 URLs. Other lists wait.
const maxLists = 2

// filesPerRequest is the number of listed or deleted files that counts as one request.
const filesPerRequest = 50

func (s *server) limit(subject *Subject) *limit {
	if l, ok := s.limits.Get(subject.Name); ok {
		return l
	}
	l := &limit{rate: rate.NewLimiter(rate.Limit(s.Rate), s.Burst), lists: make(chan struct{}, maxLists)}
	if first, ok, _ := s.limits.PeekOrAdd(subject.Name, l); ok { // a concurrent request was first
		return first
	}
	return l
}

// allow counts the request as n requests, but at most as many as the burst.
func (l *limit) allow(n int) error {
	if !l.rate.AllowN(time.Now(), min(n, l.rate.Burst())) {
		return newProblem(http.StatusTooManyRequests, "too many requests: slow down")
	}
	return nil
}

// The caller of acquireStream must call end.
func (l *limit) acquireStream() (end func(), err error) {
	end = func() { l.streams.Add(-1) }
	if l.streams.Add(1) > maxStreams {
		end()
		return nil, newProblem(http.StatusTooManyRequests, "too many concurrent uploads: wait until one ends, or upload with a signed URL")
	}
	return end, nil
}

type listSlotKey struct{}

// listSlot belongs to a request from its first list until its response is written.
type listSlot struct {
	mu  sync.Mutex
	end func()
}

func (s *listSlot) release() {
	if s.end != nil {
		s.end()
	}
}

func (l *limit) acquireListSlot(ctx context.Context) error {
	s := ctx.Value(listSlotKey{}).(*listSlot)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return nil
	}
	select {
	case l.lists <- struct{}{}:
		s.end = func() { <-l.lists }
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

const (
	// A body may take bodyGrace, and one second more for each minBodyRate bytes.
	bodyGrace   = 30 * time.Second
	minBodyRate = 16 << 10
	// writeTimeout is the time for a client to read a response.
	writeTimeout = 10 * time.Second
)

var errSlow = newProblem(http.StatusRequestTimeout, "the request body arrives too slowly: send at least 16 KiB/s")

// limitBodyRate returns a copy of the request. The server must keep the original body, because its
// type selects the handling of Expect: 100-continue.
func limitBodyRate(w http.ResponseWriter, r *http.Request) *http.Request {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // from an earlier response; ignored if unsupported
	if r.Body == http.NoBody {
		return r
	}
	b := &body{r.Body, control, time.Now().Add(bodyGrace)}
	_ = control.SetReadDeadline(b.until)
	r = r.WithContext(r.Context())
	r.Body = b
	return r
}

// The deadline of body moves as bytes arrive.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.until = b.until.Add(time.Duration(n) * time.Second / minBodyRate)
	until := b.until
	if errors.Is(err, io.EOF) {
		until = time.Time{} // a deadline after the body would make the server treat the client as disconnected
	}
	_ = b.control.SetReadDeadline(until)
	return n, err
}
