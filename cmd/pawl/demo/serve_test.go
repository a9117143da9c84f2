package demo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestCheckLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:0": true, "localhost:9100": true, "[::1]:9100": true,
		":9100": false, "0.0.0.0:9100": false, "192.168.1.2:9100": false, "example.org:9100": false, "9100": false, "": false,
	} {
		if err := checkLoopback(addr); (err == nil) != want {
			t.Errorf("%q: got %v", addr, err)
		}
	}
}

func TestLocalOnly(t *testing.T) {
	h := localOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") }), false)
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:9100", "", http.StatusOK},
		{"localhost:9100", "", http.StatusOK},
		{"127.0.0.1:9100", "https://example.org", http.StatusForbidden},
		{"127.0.0.1:9100", "null", http.StatusForbidden},
		{"rebound.example.org:9100", "", http.StatusForbidden},
		{"", "", http.StatusForbidden},
	} {
		req := httptest.NewRequest(http.MethodGet, "/photos", nil)
		req.Host = c.host
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != c.want {
			t.Errorf("host %q, origin %q: got %d, want %d", c.host, c.origin, w.Code, c.want)
		}
	}
}
