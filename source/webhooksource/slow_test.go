package webhooksource_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/webhooksource"
)

func shortReadTimeout(s *webhooksource.Source) { s.SetReadTimeout(20 * time.Millisecond) }

// On a busy machine, the server may end the connection before it gets all words, or with a reset.
func sendAndStall(t *testing.T, e *endpoint, words string) {
	t.Helper()
	conn := dial(t, e)
	_, err := io.WriteString(conn, words)
	if err == nil {
		_, err = io.Copy(io.Discard, conn)
	}
	if isTimeout(err) {
		t.Fatalf("the server did not end the connection: %v", err)
	}
}

func write(t *testing.T, conn net.Conn, words string) {
	t.Helper()
	if _, err := io.WriteString(conn, words); err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, e *endpoint) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", e.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestSlowClientsAreCutOff(t *testing.T) {
	e := serve(t, webhooksource.Config{}, ackAll{}, shortReadTimeout)
	for _, words := range []string{"", "POST /in HT", "POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"} {
		sendAndStall(t, e, words)
	}
}

func TestReadTimeoutExcludesTheSink(t *testing.T) {
	sink := sourcetest.NewSink(1)
	e := serve(t, webhooksource.Config{}, sink, shortReadTimeout)
	got := make(chan reply, 1)
	var posts atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil { // a busy machine may not send the request within the read timeout
			posts.Add(1)
			if r, err := tryRequest(ctx, http.MethodPost, e.url, strings.NewReader(payload)); err == nil {
				got <- r
				return
			}
		}
	}()
	d := sink.Next(t)
	sent := posts.Load()
	sendAndStall(t, e, "POST /in HT") // takes longer than the read timeout
	d.Done(source.Outcome{Ack: true})
	if r := sourcetest.Wait(t, got, "the answer"); r.status != http.StatusOK || posts.Load() != sent {
		t.Errorf("answered %d, after %d further posts", r.status, posts.Load()-sent)
	}
}

func TestClientDisconnects(t *testing.T) {
	sink := sourcetest.NewSink(1)
	e := serve(t, webhooksource.Config{ShutdownTimeout: time.Hour}, sink)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := tryRequest(ctx, http.MethodPost, e.url, strings.NewReader(payload))
		left <- err
	}()
	d := sink.Next(t)
	leave()
	if err := sourcetest.Wait(t, left, "the client"); err == nil {
		t.Fatal("the client got an answer")
	}
	e.cancel()
	if err := sourcetest.Wait(t, e.ended, "the end of Run"); err != nil {
		t.Error(err)
	}
	d.Done(source.Outcome{Ack: true}) // must not block
}

func TestIdleConnectionsDoNotDelayShutdown(t *testing.T) {
	quickest := time.Hour // the machine may pause during one of the runs
	for range 3 {
		e := serve(t, webhooksource.Config{ShutdownTimeout: time.Hour}, ackAll{})
		dial(t, e)
		post(t, e.url, payload) // leaves an idle connection, and ensures that the server knows the first one
		began := time.Now()
		e.cancel()
		if err := sourcetest.Wait(t, e.ended, "the end of Run"); err != nil {
			t.Error(err)
		}
		quickest = min(quickest, time.Since(began))
	}
	if quickest > 3*time.Second {
		t.Errorf("shutdown took %s", quickest)
	}
}

// The server cannot detect a disconnect of a client that has already sent its next request.
func TestShutdownTimeoutEndsPipelinedRequests(t *testing.T) {
	sink := sourcetest.NewSink(1)
	e := serve(t, webhooksource.Config{ShutdownTimeout: 20 * time.Millisecond}, sink)
	request := fmt.Sprintf("POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(payload), payload)
	conn := dial(t, e)
	write(t, conn, request)
	sink.Next(t)
	write(t, conn, request)
	e.cancel()
	if err := sourcetest.Wait(t, e.ended, "the end of Run"); err != nil {
		t.Error(err)
	}
}
