package webhooksource_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/webhooksource"
)

func longReadTimeout(s *webhooksource.Source) { s.SetReadTimeout(time.Hour) }

func statusOf(t *testing.T, conn net.Conn) int {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestConnectionLimit(t *testing.T) {
	var log bytes.Buffer
	e := serve(t, webhooksource.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, ackAll{}, longReadTimeout,
		func(s *webhooksource.Source) { s.SetLimits(2, 1<<20) })
	first := dial(t, e)
	dial(t, e)
	dial(t, e)
	if _, err := io.Copy(io.Discard, first); err != nil {
		t.Fatalf("the first connection was not ended: %v", err)
	}
	e.cancel()
	sourcetest.Wait(t, e.ended, "the end of Run")
	if !strings.Contains(log.String(), "too many connections") {
		t.Errorf("logged:\n%s", &log)
	}
}

func TestBodyBytesLimit(t *testing.T) {
	e := serve(t, webhooksource.Config{Token: "x"}, ackAll{}, longReadTimeout, func(s *webhooksource.Source) { s.SetLimits(9, 100) })
	for range 3 { // a rejected body must release its bytes
		conn := dial(t, e)
		write(t, conn, "POST /in HTTP/1.1\r\nHost: localhost\r\nAuthorization: x\r\nContent-Length: 1000\r\n\r\n"+strings.Repeat(" ", 101))
		if status := statusOf(t, conn); status != http.StatusTooManyRequests {
			t.Errorf("answered %d, want 429", status)
		}
		if r := post(t, e.url, `{"Event":"s3:TestEvent"}`, "Authorization", "x"); r.status == http.StatusTooManyRequests {
			t.Error("a small notification is rejected as well")
		}
	}
}

func TestWrongTokenIsRejectedBeforeTheBody(t *testing.T) {
	e := serve(t, webhooksource.Config{Token: "x"}, ackAll{}, longReadTimeout)
	conn := dial(t, e)
	write(t, conn, "POST /in HTTP/1.1\r\nHost: localhost\r\nAuthorization: y\r\nContent-Length: 1000\r\n\r\n{")
	if status := statusOf(t, conn); status != http.StatusUnauthorized {
		t.Errorf("answered %d, want 401", status)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && isTimeout(err) {
		t.Error("the connection is not closed")
	}
}

func TestPostTimesOut(t *testing.T) {
	sink := sourcetest.NewSink(1)
	var log bytes.Buffer
	e := serve(t, webhooksource.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, sink,
		func(s *webhooksource.Source) { s.SetAnswerTimeout(time.Millisecond) })
	r := post(t, e.url, payload)
	if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") != "5" {
		t.Errorf("answered %d, Retry-After %q: %s", r.status, r.header.Get("Retry-After"), r.body)
	}
	sink.Next(t).Done(source.Outcome{Ack: true}) // must not block
	e.cancel()
	sourcetest.Wait(t, e.ended, "the end of Run")
	if !strings.Contains(log.String(), "not acknowledged in time") {
		t.Errorf("logged:\n%s", &log)
	}
}

// net/http logs a failing accept once a second.
func TestAcceptErrorsAreThrottled(t *testing.T) {
	var log bytes.Buffer
	s, err := webhooksource.New(webhooksource.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		_, _ = io.WriteString(s.ServerLog(), "http: Accept error: accept tcp 127.0.0.1:8081: accept4: too many open files; retrying in 1s\n")
	}
	_, _ = io.WriteString(s.ServerLog(), "http: panic serving 127.0.0.1:1\n")
	if strings.Count(log.String(), "Accept error") != 1 || strings.Count(log.String(), "level=WARN") != 2 {
		t.Errorf("logged:\n%s", &log)
	}
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}
