package dashboard

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// downLedger answers every second request.
type downLedger struct {
	Ledger
	calls int
}

func (l *downLedger) Overview(context.Context, int) ([]PipelineStatus, error) {
	if l.calls++; l.calls%2 == 0 {
		return nil, errors.New("down")
	}
	return []PipelineStatus{{Pipeline: "p", Pending: l.calls}}, nil
}

type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l pipeListener) Close() error { close(l); return nil }
func (pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// The reader lives longer than the timeouts of the admin listener, and is dropped when it stops reading.
func TestSlowReaderOfEventsIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		l := make(pipeListener, 1)
		l <- conn
		srv := &http.Server{
			Handler:     Handler(Config{Ledger: &downLedger{}, Rates: &Rates{}, Logger: slog.New(slog.DiscardHandler)}),
			ReadTimeout: 10 * time.Second, WriteTimeout: 2 * time.Minute,
		}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		if _, err := io.WriteString(client, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		begun, messages, problems := time.Now(), 0, 0
		for lines := bufio.NewScanner(resp.Body); messages < 50 && lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: <tr>") {
				messages++
			} else if lines.Text() == "event: problem" {
				problems++
			}
		}
		if took := time.Since(begun); messages != 50 || problems < 40 || took < 5*time.Minute {
			t.Errorf("%d messages and %d problems in %s", messages, problems, took)
		}
		time.Sleep(liveInterval + liveTimeout + time.Second)
		_ = client.SetReadDeadline(time.Now().Add(time.Minute)) // a pipe supports it
		if rest, err := io.ReadAll(client); errors.Is(err, os.ErrDeadlineExceeded) || len(rest) > 8<<10 {
			t.Errorf("the server still sends after %d bytes: %v", len(rest), err)
		}
		_ = srv.Close()
		<-served
	})
}

func TestReadersOfEventsAreBounded(t *testing.T) {
	srv := httptest.NewServer(Handler(Config{Ledger: &downLedger{}, Rates: &Rates{}, Logger: slog.New(slog.DiscardHandler)}))
	defer srv.Close()
	for i := range maxReaders + 1 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		want := http.StatusOK
		if i == maxReaders {
			want = http.StatusServiceUnavailable
		}
		if resp.StatusCode != want || resp.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("reader %d: %s", i, resp.Status)
		}
	}
}
