package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	maxReaders   = 16
	liveInterval = 5 * time.Second // minimum
	maxLivePause = 5 * time.Minute
	liveTimeout  = 10 * time.Second // of a write
)

// snapshot returns the table body of the overview. All readers share it, and the error of a ledger that does
// not answer. Reading it takes at most 2 % of the time, unless
// it takes more than 6 s.
func (s *server) snapshot(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.liveAt) < s.livePause {
		return s.live, s.liveErr
	}
	begun := time.Now()
	all, err := s.Ledger.Overview(ctx, examineLimit)
	if errors.Is(err, context.Canceled) {
		return nil, err // this reader's own end
	}
	var out bytes.Buffer
	if err == nil {
		err = s.pages.ExecuteTemplate(&out, "live", all)
	}
	s.live, s.liveErr, s.liveAt = out.Bytes(), err, time.Now()
	s.livePause = liveInterval
	if err == nil {
		s.livePause = min(max(liveInterval, 50*s.liveAt.Sub(begun)), maxLivePause)
	}
	return s.live, err
}

// events sends the overview until the client disconnects. It drops a client that does not read.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.readerSlots <- struct{}{}:
		defer func() { <-s.readerSlots }()
	default:
		http.Error(w, "too many live pages are open: close one, or reload this page", http.StatusServiceUnavailable)
		return
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Time{}) // otherwise the request ends with the server's ReadTimeout
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(liveInterval)
	defer tick.Stop()
	for {
		bounded, stop := context.WithTimeout(r.Context(), pageTimeout)
		live, err := s.snapshot(bounded)
		stop()
		message := []byte("event: problem\ndata:\n\n")
		if err == nil {
			message = fmt.Appendf(nil, "data: %s\n\n", bytes.ReplaceAll(live, []byte("\n"), []byte("\ndata: ")))
		}
		_ = conn.SetWriteDeadline(time.Now().Add(liveTimeout))
		if _, err := w.Write(message); err != nil {
			return
		}
		if err := conn.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}
