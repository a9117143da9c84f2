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

	"github.com/pawlhq/pawl/internal/virtualtime"
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
	virtualtime.Test(t, func(t *testing.T) {
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

type manyPipelines struct{ Ledger }

func (manyPipelines) Overview(context.Context, int) ([]PipelineStatus, error) {
	return make([]PipelineStatus, 1000), nil
}

func TestSlowReaderOverTCPIsDropped(t *testing.T) {
	t.Parallel()
	dropped := make(chan struct{})
	srv := httptest.NewUnstartedServer(Handler(Config{Ledger: manyPipelines{}, Rates: &Rates{}, Logger: slog.New(slog.DiscardHandler)}))
	srv.Config.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
		case http.StateClosed:
			close(dropped)
		}
	}
	srv.Start()
	defer srv.Close()
	client, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_ = client.(*net.TCPConn).SetReadBuffer(4 << 10)
	if _, err := io.WriteString(client, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-dropped:
	case <-time.After(time.Minute):
		t.Error("the server still waits for the reader")
	}
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
		line, err := bufio.NewReader(resp.Body).ReadString('>')
		if tooMany := strings.HasPrefix(line, "event: problem\ndata: Too many"); resp.StatusCode != http.StatusOK || tooMany != (i == maxReaders) || tooMany != (err != nil) {
			t.Fatalf("reader %d: %s %q %v", i, resp.Status, line, err)
		}
	}
}

type slowLedger struct {
	Ledger
	takes time.Duration
	calls int
}

func (l *slowLedger) Overview(ctx context.Context, _ int) ([]PipelineStatus, error) {
	l.calls++
	select {
	case <-time.After(l.takes):
		return []PipelineStatus{{Pipeline: "p", Pending: l.calls}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestSlowLedgerIsReadRarely(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := &slowLedger{takes: time.Second}
		h := Handler(Config{Ledger: l, Rates: &Rates{}, Logger: slog.New(slog.DiscardHandler)})
		get := func(patience time.Duration) (took time.Duration, code int, body string) {
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			begun, w := time.Now(), httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			return time.Since(begun), w.Code, w.Body.String()
		}
		check := func(what string, patience, took time.Duration, code, calls int, text string) {
			t.Helper()
			if gotTook, gotCode, body := get(patience); gotTook != took || gotCode != code || l.calls != calls || !strings.Contains(body, text) {
				t.Errorf("%s: %s, %d, %d reads, want %s, %d, %d reads, %q in\n%s", what, gotTook, gotCode, l.calls, took, code, calls, text, body)
			}
		}
		background := func(patience time.Duration) {
			go func() { _, _, _ = get(patience) }()
			synctest.Wait()
		}
		background(time.Millisecond)
		check("impatient", 500*time.Millisecond, 500*time.Millisecond, 503, 1, "deadline")
		check("patient", time.Minute, 500*time.Millisecond, 200, 1, ">1</a>")
		check("age", time.Minute, 0, 200, 1, "as of "+time.Now().UTC().Format("15:04:05 UTC"))
		time.Sleep(51 * time.Second)
		l.takes = time.Hour
		background(time.Minute)
		check("old table", time.Minute, 0, 200, 2, ">1</a>")
		time.Sleep(pageTimeout + time.Second)
		check("error", time.Minute, 0, 503, 2, "deadline")
		time.Sleep(maxLivePause - 2*time.Second)
		check("pause", time.Minute, 0, 503, 2, "deadline")
		time.Sleep(2 * time.Second)
		l.takes = 0
		check("recovery", time.Minute, 0, 200, 3, ">3</a>")
	})
}
