package demo

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
)

// putDelayer is a proxy that delays one PUT of a worker until the worker is killed.
type putDelayer struct {
	next http.Handler
	// sender receives the access key of the delayed PUT, and answered the status of its response.
	sender   chan string
	answered chan int

	mu       sync.Mutex
	armed    bool
	released chan struct{}
}

func newPutDelayer(next http.Handler) *putDelayer {
	return &putDelayer{next: next, sender: make(chan string, 1), answered: make(chan int, 1), released: make(chan struct{})}
}

// delayNext delays the next PUT of an object with records.
func (l *putDelayer) delayNext() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = true
}

func (l *putDelayer) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.released:
	default:
		close(l.released)
	}
}

func (l *putDelayer) matches(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	takes := l.armed && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "."+archiveFormat)
	l.armed = l.armed && !takes
	return takes
}

func (l *putDelayer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !l.matches(r) {
		l.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxObject))
	if err != nil {
		return
	}
	key, _, _ := strings.Cut(r.URL.Query().Get("X-Amz-Credential"), "/")
	l.sender <- key
	<-l.released
	r = r.WithContext(context.WithoutCancel(r.Context())) // the sender's death would cancel the request
	r.Body = io.NopCloser(bytes.NewReader(body))
	seen := &statusRecorder{ResponseWriter: w, code: http.StatusOK}
	l.next.ServeHTTP(seen, r)
	l.answered <- seen.code
}

type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}
