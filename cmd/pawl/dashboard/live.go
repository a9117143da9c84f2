package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	maxReaders   = 16
	liveInterval = 5 * time.Second // minimum
	maxLivePause = 5 * time.Minute
	liveTimeout  = 10 * time.Second // of a write
)

// liveTable is the table body of the overview, or the error of a ledger that does not answer.
type liveTable struct {
	body  []byte
	err   error
	until time.Time // it may not be read again before
}

// snapshot returns the table body, which all requests share. One of them reads it, even after its client has
// disconnected. Reading takes at most 2 % of the time, unless it takes more than 6 s.
func (s *server) snapshot(ctx context.Context) ([]byte, error) {
	old := s.live.Load()
	switch {
	case old == nil:
		select {
		case s.reading <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case time.Now().Before(old.until):
		return old.body, old.err
	default:
		select {
		case s.reading <- struct{}{}:
		default:
			return old.body, old.err
		}
	}
	defer func() { <-s.reading }()
	if t := s.live.Load(); t != old {
		return t.body, t.err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), pageTimeout)
	defer stop()
	begun := time.Now()
	all, err := s.Ledger.Overview(ctx, examineLimit)
	var out bytes.Buffer
	if err == nil {
		err = s.pages.ExecuteTemplate(&out, "live", all)
	}
	now := time.Now()
	s.live.Store(&liveTable{out.Bytes(), err, now.Add(min(max(liveInterval, 50*now.Sub(begun)), maxLivePause))})
	return out.Bytes(), err
}

// events sends the overview until the client disconnects. It drops a client that does not read.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.readerSlots <- struct{}{}:
		defer func() { <-s.readerSlots }()
	default:
		w.Header().Set("Content-Type", "text/event-stream") // a page cannot read other responses
		_, _ = io.WriteString(w, "event: problem\ndata: Too many live pages are open: close one.\n\n")
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
		message := []byte("event: problem\ndata: The ledger does not answer.\n\n")
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
