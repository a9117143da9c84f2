package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// Clients that send no request, or whose request does not end, cannot make a probe fail.
func TestProbesAnswerDuringFlood(t *testing.T) {
	s, err := Listen(t.Context(), Config{
		Listen: "127.0.0.1:0", Status: func() Status { return Status{} }, Logger: slog.New(slog.DiscardHandler),
		Metrics: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	for _, c := range []struct {
		name, send string
		count      int
	}{
		{"silent", "", 10_000},
		{"half a header", "GET /livez HTTP/1.1\r\nHost: loc", 1_000},
		{"endless request", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", maxConnections + 100},
		{"half a header beside endless requests", "GET /li", 500},
	} {
		for i := range c.count {
			conn, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatalf("%s: connection %d: %v", c.name, i, err)
			}
			if open = append(open, conn); len(open) > 4*maxConnections { // saves descriptors
				checkClosed(t, open[0])
				open = open[1:]
			}
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Fatalf("%s: connection %d: %v", c.name, i, err)
			}
			if (i+1)%(c.count/10) == 0 {
				if err := probe(s.Addr()); err != nil {
					t.Fatalf("%s, after %d connections: %v", c.name, i+1, err)
				}
			}
		}
	}
}

// checkClosed waits until the server has closed a connection.
func checkClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("an old connection is open: %v", err)
	}
}

func probe(addr string) error {
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + addr + "/livez")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
