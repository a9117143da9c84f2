package admin

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/virtualtime"
)

func TestServer(t *testing.T) {
	status := Status{}
	s, err := Listen(t.Context(), Config{
		Listen: "127.0.0.1:0", Token: "hush", Status: func() Status { return status }, Logger: slog.New(slog.DiscardHandler),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pawl_up 1\n") }),
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
	_, port, _ := net.SplitHostPort(s.Addr())
	for _, c := range []struct {
		name, path, host, auth string
		status                 Status
		code                   int
		body                   string
	}{
		{name: "live", path: "/livez", status: Status{Unready: []string{"starting"}}, code: 200, body: `{"ok":true}`},
		{name: "dead", path: "/livez", status: Status{Dead: []string{"blocked"}}, code: 503, body: `{"ok":false,"problems":["blocked"]}`},
		{name: "ready", path: "/readyz", code: 200, body: `{"ok":true}`},
		{name: "not ready", path: "/readyz", status: Status{Dead: []string{"a"}, Unready: []string{"b"}}, code: 503, body: `{"ok":false,"problems":["a","b"]}`},
		{name: "metrics", path: "/metrics", code: 200, body: "pawl_up 1"},
		{name: "localhost", path: "/metrics", host: "localhost:" + port, code: 200, body: "pawl_up 1"},
		{name: "IPv6", path: "/metrics", host: "[::1]:" + port, code: 200, body: "pawl_up 1"},
		{name: "host name that resolves to loopback", path: "/metrics", host: "attacker.example:" + port, code: 421, body: "this listener serves only loopback host names"},
		{name: "profile without token", path: "/debug/pprof/cmdline", code: 401, body: "profiles need the token of the configuration's admin.token"},
		{name: "profile with a wrong token", path: "/debug/pprof/", auth: "Bearer wrong", code: 401, body: "profiles need the token of the configuration's admin.token"},
		{name: "profile", path: "/debug/pprof/goroutine?debug=1", auth: "Bearer hush", code: 200, body: "goroutine profile: total"},
		{name: "unknown path", path: "/", code: 404, body: "404 page not found"},
	} {
		status = c.status
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", c.auth)
		req.Host = c.host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.code || !strings.HasPrefix(string(body), c.body) {
			t.Errorf("%s: %d %.100q (%v), want %d %q", c.name, resp.StatusCode, body, err, c.code, c.body)
		}
	}
}

func TestCheckLoop(t *testing.T) {
	virtualtime.Test(t, testCheckLoop)
}

func testCheckLoop(t *testing.T) {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for _, c := range []struct {
		turn, answer time.Time
		want         Status
	}{
		{want: Status{Unready: []string{"the loop has not started yet"}}},
		{turn: ago(time.Second), want: Status{Unready: []string{"the store has not answered yet"}}},
		{turn: ago(time.Second), answer: ago(50 * time.Second)},
		{turn: ago(29 * time.Second), answer: ago(61 * time.Second), want: Status{Unready: []string{"the store has not answered for 1m1s"}}},
		{turn: ago(31 * time.Second), answer: ago(time.Hour), want: Status{Dead: []string{"the loop has been blocked for 31s"}}},
	} {
		var got Status
		if got.CheckLoop("the loop", "the store", c.turn, c.answer, time.Second, time.Minute); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

func TestDashboardAccess(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the rows") })
	for _, c := range []struct {
		token    string
		loopback bool
		password string
		code     int
		access   string
	}{
		{loopback: true, code: 200, access: "read-only"},
		{loopback: false, code: 404, access: "off on this address: set admin.token"},
		{token: "hush", loopback: true, code: 401, access: "with the token"},
		{token: "hush", loopback: true, password: "wrong", code: 401},
		{token: "hush", loopback: true, password: "hush", code: 200},
		{token: "hush", loopback: false, code: 401},
		{token: "hush", loopback: false, password: "hush", code: 200},
	} {
		s := &Server{cfg: Config{Metrics: http.NotFoundHandler(), Dashboard: page, Token: c.token}, loopback: c.loopback}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/objects", nil)
			if c.password != "" {
				req.SetBasicAuth("operator", c.password)
			}
			w := httptest.NewRecorder()
			if s.handler().ServeHTTP(w, req); w.Code != c.code || strings.Contains(w.Body.String(), "the rows") != (c.code == 200) ||
				!strings.Contains(s.DashboardAccess(), c.access) || c.code == 404 && !strings.Contains(w.Body.String(), c.access) {
				t.Errorf("%s %+v: %d %s", method, c, w.Code, w.Body)
			}
		}
	}
}

// The caller closes the ledger after Serve, so no request may use it then.
func TestServeWaitsForRequests(t *testing.T) {
	started, ended := make(chan struct{}), false
	s, err := Listen(t.Context(), Config{
		Listen: "127.0.0.1:0", Metrics: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler),
		Dashboard: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(started)
			<-r.Context().Done()
			runtime.Gosched()
			ended = true
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-started
	stop()
	if err := <-done; err != nil || !ended {
		t.Errorf("Serve returned %v; the request has ended: %t", err, ended)
	}
	<-answered
}

// Without a token, no Authorization header gives access to the profiles.
func TestNoTokenNoProfiles(t *testing.T) {
	s := &Server{cfg: Config{Metrics: http.NotFoundHandler()}}
	for _, auth := range []string{"", "Bearer ", "Bearer"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/pprof/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", auth)
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, req)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("Authorization %q: status %d, want 401", auth, w.Code)
		}
	}
}
