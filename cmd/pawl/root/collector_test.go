//go:build unix

package root_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

type collector struct {
	mu     sync.Mutex
	bodies strings.Builder
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies.Write(body)
}

// otlp: starts a collector of spans, to which the environment points.
func startCollector(ts *testscript.TestScript, _ bool, _ []string) {
	c := &collector{}
	server := httptest.NewServer(c)
	ts.Defer(server.Close)
	ts.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	ts.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	collectors.Store(server.URL, c)
}

var collectors sync.Map // URL → *collector

// spans TEXT...: waits until the received spans have each text.
func spans(ts *testscript.TestScript, _ bool, texts []string) {
	v, _ := collectors.Load(ts.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	c := v.(*collector)
	for _, text := range texts {
		if !poll(func() bool { c.mu.Lock(); defer c.mu.Unlock(); return strings.Contains(c.bodies.String(), text) }) {
			ts.Fatalf("no span has %q", text)
		}
	}
}
