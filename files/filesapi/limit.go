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

// limit is what one subject may use of the service.
type limit struct {
	rate    *rate.Limiter
	streams atomic.Int32
	spooled int64         // bytes on the disk that take room; guarded by server.spooling
	lists   chan struct{} // has one for each that is being made
}

// maxStreams is how many files a subject may send through the service at a time:
// each takes room on its disk.
const maxStreams = 4

// maxLists is how many requests of a subject may have lists made at a time, because
// each signs up to a thousand URLs. Others wait.
const maxLists = 2

// filesPerRequest is for how many files a list, or the deletion of all files of an entity,
// costs as much as a request.
const filesPerRequest = 50

func (s *server) limit(subject *Subject) *limit {
	if l, ok := s.limits.Get(subject.Name); ok {
		return l
	}
	l := &limit{rate: rate.NewLimiter(rate.Limit(s.Rate), s.Burst), lists: make(chan struct{}, maxLists)}
	if first, ok, _ := s.limits.PeekOrAdd(subject.Name, l); ok { // another request was faster
		return first
	}
	return l
}

// allow refuses a subject that sends more than its rate, by as many requests as n. What
// costs more than all that it may send at once costs that.
func (l *limit) allow(n int) error {
	if !l.rate.AllowN(time.Now(), min(n, l.rate.Burst())) {
		return newProblem(http.StatusTooManyRequests, "too many requests: slow down")
	}
	return nil
}

// acquireStream refuses a subject that sends too many files at a time; end lets it send
// another.
func (l *limit) acquireStream() (end func(), err error) {
	end = func() { l.streams.Add(-1) }
	if l.streams.Add(1) > maxStreams {
		end()
		return nil, newProblem(http.StatusTooManyRequests, "too many concurrent uploads: wait until one ends, or upload with a signed URL")
	}
	return end, nil
}

type listSlotKey struct{}

// listSlot is a request's share of maxLists. The first list of a request takes it, and the
// request holds it until its answer is written.
type listSlot struct {
	mu  sync.Mutex
	end func()
}

func (s *listSlot) release() {
	if s.end != nil {
		s.end()
	}
}

// acquireListSlot waits until the subject may have another list made, or another page of URLs to
// upload parts, for the request of ctx.
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
	// bodyGrace and slowest are how a body must come, or the connection is cut: within 30 s
	// and a second for each 16 KiB.
	bodyGrace   = 30 * time.Second
	minBodyRate = 16 << 10
	// writeTimeout is the time that a client has to read an answer.
	writeTimeout = 10 * time.Second
)

// errSlow: the body comes too slowly.
var errSlow = newProblem(http.StatusRequestTimeout, "the request body arrives too slowly: send at least 16 KiB/s")

// limitBodyRate returns the request with a body whose reading fails when it comes too slowly. The
// server keeps its own: of that it knows that a client waits to be asked for it.
func limitBodyRate(w http.ResponseWriter, r *http.Request) *http.Request {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // of an earlier answer; a connection that cannot has none
	if r.Body == http.NoBody {
		return r
	}
	b := &body{r.Body, control, time.Now().Add(bodyGrace)}
	_ = control.SetReadDeadline(b.until)
	r = r.WithContext(r.Context())
	r.Body = b
	return r
}

// body is a request's body that must come by a time.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.until = b.until.Add(time.Duration(n) * time.Second / minBodyRate)
	until := b.until
	if errors.Is(err, io.EOF) {
		until = time.Time{} // or the server would take the client for gone
	}
	_ = b.control.SetReadDeadline(until)
	return n, err
}
