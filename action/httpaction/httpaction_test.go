package httpaction

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/worker"
)

const idempotencyKey = "0123456789abcdef0123456789abcdef"

func task() *pawl.Task {
	return &pawl.Task{
		Pipeline: "load", Object: event.Object{Bucket: "exports", Key: "in/a b.csv"}, Kind: event.Created,
		Info: bucket.Info{ETag: "abc", Size: 12}, Attempt: 2, Fence: 1763700000000, IdempotencyKey: idempotencyKey,
	}
}

func serve(t *testing.T, c Config, f http.HandlerFunc) *handler {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	c.URL = s.URL + c.URL
	h, err := newHandler(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.client.CloseIdleConnections)
	return h
}

func TestRequest(t *testing.T) {
	for name, tt := range map[string]struct {
		secret string
		verify func() (*standardwebhooks.Webhook, error)
	}{
		"base64": {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", func() (*standardwebhooks.Webhook, error) {
			return standardwebhooks.NewWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		}},
		"text": {"open sesame", func() (*standardwebhooks.Webhook, error) {
			return standardwebhooks.NewWebhookRaw([]byte("open sesame"))
		}},
		"unsigned": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got *http.Request
			var body []byte
			h := serve(t, Config{URL: "/load?x=1", Secret: tt.secret}, func(_ http.ResponseWriter, r *http.Request) {
				got = r
				body, _ = io.ReadAll(r.Body)
			})
			if err := h.Handle(t.Context(), task()); err != nil {
				t.Fatal(err)
			}
			if got.Method != "POST" || got.URL.String() != "/load?x=1" {
				t.Errorf("%s %s", got.Method, got.URL)
			}
			for header, want := range map[string]string{
				"Content-Type": "application/json", "Idempotency-Key": idempotencyKey, "Pawl-Fence": "1763700000000", "Webhook-Id": idempotencyKey,
			} {
				if got.Header.Get(header) != want {
					t.Errorf("%s: %q, want %q", header, got.Header.Get(header), want)
				}
			}
			var facts map[string]any
			if err := json.Unmarshal(body, &facts); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"pipeline": "load", "bucket": "exports", "key": "in/a b.csv", "kind": "created", "etag": "abc", "version_id": "", "size": 12.,
				"fence": 1763700000000., "attempt": 2., "idempotency_key": idempotencyKey,
			}
			if diff := cmp.Diff(want, facts); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if tt.verify == nil {
				if got.Header.Get("Webhook-Signature") != "" || got.Header.Get("Webhook-Timestamp") == "" {
					t.Errorf("headers %v: want a timestamp and no signature", got.Header)
				}
				return
			}
			wh, err := tt.verify()
			if err != nil {
				t.Fatal(err)
			}
			if err := wh.Verify(body, got.Header); err != nil {
				t.Error(err)
			}
			if err := wh.Verify(append(body, ' '), got.Header); err == nil {
				t.Error("the signature also matches another body")
			}
		})
	}
}

func TestStatusCodes(t *testing.T) {
	const permanent, retried, done = "permanent", "retried", "done"
	for code, want := range map[int]string{
		200: done, 201: done, 202: done, 204: done, 299: done,
		300: permanent, 301: permanent, 302: permanent, 304: permanent, 307: permanent, 308: permanent,
		400: permanent, 401: permanent, 404: permanent, 409: permanent, 410: permanent, 422: permanent, 499: permanent,
		408: retried, 425: retried, 429: retried, 500: retried, 501: retried, 502: retried, 503: retried, 504: retried, 599: retried,
	} {
		h := serve(t, Config{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		err := h.Handle(t.Context(), task())
		got := retried
		switch {
		case err == nil:
			got = done
		case worker.IsPermanent(err):
			got = permanent
		}
		if got != want {
			t.Errorf("%d is %s, want %s (%v)", code, got, want, err)
		}
	}
}

func TestErrorQuotesTheBody(t *testing.T) {
	h := serve(t, Config{URL: "/load?token=secret"}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(422)
		_, _ = w.Write([]byte("no such\r\n\x00\x1b[2Jtable\xff"))
	})
	err := h.Handle(t.Context(), task())
	want := `"s3://exports/in/a b.csv": POST ` + h.redactedURL + ": 422 Unprocessable Entity: no such ..[2Jtable."
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Error("the query is in the error")
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for _, code := range []int{408, 425, 429, 500, 503} {
		h := serve(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(code)
		})
		err := errors.Unwrap(h.Handle(t.Context(), task()))
		inner := statusError(code, "")
		if code == http.StatusServiceUnavailable {
			inner = unreachable(inner)
		}
		if want := pawl.RetryAfter(inner, 2*time.Minute); !reflect.DeepEqual(err, want) {
			t.Errorf("%d: error %#v, want %#v", code, err, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "90": 90 * time.Second, "3600": time.Hour, "3601": time.Hour,
		"9223372036854775807": time.Hour, "99999999999999999999999": time.Hour,
		"-1": 0, "1.5": 0, "soon": 0, "\x00": 0, "1e9": 0,
		"Sat, 21 Nov 2026 12:00:30 GMT":    30 * time.Second,
		"Saturday, 21-Nov-26 12:00:30 GMT": 30 * time.Second,
		"Sat, 21 Nov 2026 11:00:00 GMT":    0,
		"Fri, 31 Dec 9999 23:59:59 GMT":    time.Hour,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", header, got, want)
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var followed atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		h := serve(t, Config{Secret: "s"}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL+"/new?token=secret")
			w.WriteHeader(code)
		})
		err := h.Handle(t.Context(), task())
		if !worker.IsPermanent(err) || !strings.Contains(err.Error(), "redirected to "+other.URL+"/new, which is not followed") {
			t.Errorf("%d: error %v", code, err)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: the query is in the error: %v", code, err)
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
}

func TestNoProxyIsUsed(t *testing.T) {
	h := serve(t, Config{}, func(http.ResponseWriter, *http.Request) {})
	if h.client.Transport.(*http.Transport).Proxy != nil {
		t.Error("the transport has a proxy")
	}
}

func writeUntil(gone <-chan struct{}, w http.ResponseWriter, each []byte) {
	for {
		if _, err := w.Write(each); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-gone:
			return
		default:
		}
	}
}

func TestEndlessBody(t *testing.T) {
	for _, code := range []int{200, 500} {
		flood := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			writeUntil(r.Context().Done(), w, make([]byte, 64<<10))
		})
		stall := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		stall.bodyTimeout = 10 * time.Millisecond
		for name, h := range map[string]*handler{"flood": flood, "stall": stall} {
			if err := h.Handle(t.Context(), task()); (err == nil) != (code == 200) || worker.IsPermanent(err) {
				t.Errorf("%s after %d: error %v", name, code, err)
			}
		}
	}
}

func TestNoAnswer(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client has disconnected
		<-r.Context().Done()
	}
	t.Run("timeout", func(t *testing.T) {
		err := serve(t, Config{Timeout: 20 * time.Millisecond}, silent).Handle(t.Context(), task())
		if err == nil || worker.IsPermanent(err) || !strings.Contains(err.Error(), "no answer within 20ms") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("lease lost", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			cancel(pawl.ErrLeaseLost)
			silent(w, r)
		})
		if err := h.Handle(ctx, task()); !errors.Is(err, pawl.ErrLeaseLost) {
			t.Errorf("error %v, want the cause", err)
		}
	})
	t.Run("connection closed", func(t *testing.T) {
		h := serve(t, Config{URL: "/?token=secret"}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		if err := h.Handle(t.Context(), task()); err == nil || worker.IsPermanent(err) || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("connection refused", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		h, err := newHandler(Config{URL: "http://" + l.Addr().String() + "/?token=secret"})
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		err = h.Handle(t.Context(), task())
		if err == nil || worker.IsPermanent(err) || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v", err)
		}
	})
}

func TestInvalidResponses(t *testing.T) {
	for _, junk := range []string{
		"\x16\x03\x01\x1b[2J\xff\x00junk\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\x1b[2J\xffjunk\r\n\r\n",
		"HTTP/1.1 2\x1b0 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 128<<10) + "\r\n\r\n", // exceeds the limit for headers
		"",
	} {
		h, err := newHandler(Config{URL: "http://" + rawServer(t, junk)})
		if err != nil {
			t.Fatal(err)
		}
		err = h.Handle(t.Context(), task())
		if err == nil || worker.IsPermanent(err) {
			t.Errorf("%.20q: error %v, want a temporary error", junk, err)
		} else if strings.ContainsAny(err.Error(), "\x1b\x00\r\n") || !utf8.ValidString(err.Error()) {
			t.Errorf("%.20q: error %q is not printable", junk, err)
		}
	}
}

func rawServer(t *testing.T, raw string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write([]byte(raw))
		_ = c.Close()
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

type pipeListener chan net.Conn

func (p pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (pipeListener) Close() error   { return nil }
func (pipeListener) Addr() net.Addr { return &net.IPAddr{} }

// In real time, net/http discards a connection whose request it has not finished within 50 ms after the response.
func TestConnectionIsReused(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		connections := make(pipeListener)
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_, _ = w.Write(make([]byte, 1000))
		})}
		go func() { _ = s.Serve(connections) }() // always ErrServerClosed
		defer func() {
			close(connections)
			_ = s.Close()
		}()
		h, err := newHandler(Config{URL: "http://receiver.example"})
		if err != nil {
			t.Fatal(err)
		}
		defer h.client.CloseIdleConnections()
		var dialed atomic.Int32
		h.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			dialed.Add(1)
			connections <- server
			return client, nil
		}
		for range 20 {
			if err := h.Handle(t.Context(), task()); err == nil || !strings.Contains(err.Error(), "500 Internal Server Error") {
				t.Error(err)
			}
		}
		if n := dialed.Load(); n != 1 {
			t.Errorf("%d connections for 20 requests", n)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for want, c := range map[string]Config{
		"missing":               {},
		"must begin with http":  {URL: "ftp://example.com/hunter2"},
		"begin with http:// or": {URL: "example.com/hunter2"},
		"and a host":            {URL: "http:///hunter2"},
		"must not hold a user":  {URL: "http://user:hunter2@example.com"},
		"is not a URL":          {URL: "http://example.com/hunter2\n"},
		"a bad port":            {URL: "http://user:hunter2/@example.com"},
		"is not base64":         {URL: "http://example.com", Secret: "whsec_!hunter2"},
		"after whsec_ ":         {URL: "http://example.com", Secret: "whsec_"},
		"timeout":               {URL: "http://example.com", Timeout: -1},
	} {
		_, err := New(c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v): error %v, want %q", c, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New(%+v): the error contains a secret: %v", c, err)
		}
	}
}
