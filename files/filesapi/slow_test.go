package filesapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

type pipeListener chan net.Conn

func (p pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (pipeListener) Close() error   { return nil }
func (pipeListener) Addr() net.Addr { return &net.IPAddr{} }

func testSlow(t *testing.T) {
	for name, test := range map[string]struct {
		path, contentType string
		chunks, chunk     int
		every             time.Duration
		want              int
	}{
		"silent query":   {"/graphql", "application/json", 0, 0, 0, http.StatusRequestTimeout},
		"dripping query": {"/graphql", "application/json", 100, 1, 10 * time.Second, http.StatusRequestTimeout},
		"silent file":    {"/v1/files?entity=e", "text/plain", 0, 0, 0, http.StatusRequestTimeout},
		"dripping file":  {"/v1/files?entity=e", "text/plain", 100, 1, 10 * time.Second, http.StatusRequestTimeout},
		"short file":     {"/v1/files?entity=e", "text/plain", 1, 2, 20 * time.Second, http.StatusServiceUnavailable},
		"steady file":    {"/v1/files?entity=e", "text/plain", 1000, 1000, 50 * time.Millisecond, http.StatusServiceUnavailable},
		"long file":      {"/v1/files?entity=e", "text/plain", 2000, 17000, time.Second, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			virtualtime.Test(t, func(t *testing.T) {
				answer := sendSlowly(t, dir, token(t, "write:e"), test.path, test.contentType, test.chunks, test.chunk, test.every)
				if answer.StatusCode != test.want || answer.Close != (test.want == http.StatusRequestTimeout) {
					t.Errorf("%d, close %v: want %d", answer.StatusCode, answer.Close, test.want)
				}
			})
		})
	}
}

// The index of the API rejects writes. With chunks of one byte, the last byte of the body is
// missing.
func sendSlowly(t *testing.T, dir, token, path, contentType string, chunks, chunk int, every time.Duration) *http.Response {
	tokens := must(filesapi.NewTokens(must(filesapi.Secret(secret)), filesapi.Claims{}))
	service := &files.Service{Index: files.NewIndex(readOnly{memory.New()}), Objects: noObjects{}, Times: files.DefaultTimes()}
	h := must(filesapi.New(filesapi.Config{Files: service, Tokens: tokens, Cursors: secret, Spool: dir, Logger: slog.New(slog.DiscardHandler)}))
	server, connections := &http.Server{Handler: h}, make(pipeListener, 1)
	go func() { _ = server.Serve(connections) }() // always ErrServerClosed
	client, served := net.Pipe()
	connections <- served
	defer func() {
		close(connections)
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() {
		length := chunks*chunk + 1
		if chunk > 1 {
			length--
		}
		_, err := fmt.Fprintf(client, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, token, contentType, length)
		for i := 0; i < chunks && err == nil; i++ {
			time.Sleep(every)
			_, err = client.Write(bytes.Repeat([]byte(" "), chunk))
		}
	})
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	return answer
}

// noObjects is a store whose Sign takes 20 s, and that supports nothing else.
type noObjects struct{ files.Objects }

func (noObjects) Sign(ctx context.Context, _ *files.File, _ time.Time) (files.SignedRequest, error) {
	select {
	case <-time.After(20 * time.Second):
	case <-ctx.Done():
	}
	return files.SignedRequest{}, ctx.Err()
}

type readOnly struct{ store.Store }

func (readOnly) Apply(context.Context, []store.Change) ([]store.Outcome, error) {
	return nil, errors.New("cannot execute INSERT in a read-only transaction")
}

func testReadOnly(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/uploads":        string(must(json.Marshal(uploadOf("e", "hello")))),
		"/v1/files?entity=e": "hello",
	} {
		dir := t.TempDir()
		virtualtime.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, nil))
			service := &files.Service{Index: files.NewIndex(readOnly{memory.New()}), Objects: noObjects{}, Times: files.DefaultTimes(), Logger: logger}
			service.Index.Logger = logger
			tokens := must(filesapi.NewTokens(must(filesapi.Secret(secret)), filesapi.Claims{}))
			h := must(filesapi.New(filesapi.Config{Files: service, Tokens: tokens, Cursors: secret, Spool: dir, Logger: logger}))
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+token(t, "write:e"))
			r.Header.Set("Content-Type", "application/json")
			began, answer := time.Now(), httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			if took := time.Since(began); took > 31*time.Second || answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" {
				t.Errorf("%s: %d %s after %s", path, answer.Code, answer.Body, took)
			}
			if n := strings.Count(log.String(), "ambiguous answer to a batch"); n != 1 {
				t.Errorf("%d times in the log: %s", n, &log)
			}
		})
	}
}
