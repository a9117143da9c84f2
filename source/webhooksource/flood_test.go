//go:build !race

package webhooksource_test

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/source/webhooksource"
)

var flood = flag.Int("flood", 400, "hostile connections in TestFlood")

// Thousands of connections send nothing, one byte at a time, or a body without end. The race detector slows
// down the legitimate sender too much, so only the nightly run has this test.
func TestFlood(t *testing.T) {
	const unfinished = "POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\nWebhook-Id: x\r\nWebhook-Timestamp: 1\r\nWebhook-Signature: v1,x\r\n\r\n"
	header := "POST /in HTTP/1.1\r\nHost: localhost\r\n"
	for _, cfg := range []webhooksource.Config{{Token: "Bearer x"}, {Secret: secret}} {
		for name, h := range map[string]hostile{
			"silent":             {},
			"a byte at a time":   {begin: header + "X-Long: ", more: "x"},
			"body without end":   {begin: unfinished, more: strings.Repeat("x", 256<<10)},
			"body, byte by byte": {begin: unfinished, more: "x"},
		} {
			t.Run(fmt.Sprintf("%s/secret %t", name, cfg.Secret != ""), func(t *testing.T) {
				e := serve(t, cfg, ackAll{})
				h.attack(t, e, *flood)
				peakMemory := watchMemory(t)
				client := &http.Client{Timeout: 5 * time.Second}
				refused := 0
				began := time.Now()
				for i := 0; i < 50; {
					client.CloseIdleConnections() // each post uses a new, unauthenticated connection
					if status := validPost(t, client, e.url, cfg); status == http.StatusOK {
						i++
					} else if refused++; refused > 200 {
						t.Fatalf("accepted %d posts, and then none: status %d", i, status)
					}
				}
				t.Logf("accepted 50 posts in %s, refused %d, peak memory %d MiB", time.Since(began).Round(time.Millisecond), refused, peakMemory()>>20)
				if m := peakMemory(); m > 200<<20 {
					t.Errorf("used %d MiB", m>>20)
				}
			})
		}
	}
}

type hostile struct{ begin, more string }

// attack reopens connections that the server closes.
func (h hostile) attack(t *testing.T, e *endpoint, connections int) {
	t.Helper()
	const attackers = 4
	var wg, all sync.WaitGroup
	stop := make(chan struct{})
	all.Add(attackers)
	for range attackers {
		wg.Go(func() {
			conns := make([]net.Conn, connections/attackers)
			pause := time.NewTicker(100 * time.Millisecond)
			defer pause.Stop()
			for round := 0; ; round++ {
				for i, c := range conns {
					conns[i] = h.sendMore(c, e.Addr().String())
				}
				if round == 0 {
					all.Done()
				}
				select {
				case <-stop:
					for _, c := range conns {
						if c != nil {
							_ = c.Close()
						}
					}
					return
				case <-pause.C:
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); wg.Wait() })
	all.Wait()
}

func (h hostile) sendMore(c net.Conn, address string) net.Conn {
	text := h.more
	if c != nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Microsecond))
		if _, err := c.Read(make([]byte, 1)); err != nil && !isTimeout(err) {
			_ = c.Close()
			c = nil
		}
	}
	if c == nil {
		var err error
		if c, err = net.DialTimeout("tcp", address, time.Second); err != nil {
			return nil
		}
		text = h.begin
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
	if _, err := io.WriteString(c, text); err != nil && !isTimeout(err) {
		_ = c.Close()
		return nil
	}
	return c
}

func validPost(t *testing.T, client *http.Client, url string, cfg webhooksource.Config) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", cfg.Token)
	if cfg.Secret != "" {
		for pair := range slices.Chunk(sign(t, secret, payload, time.Now()), 2) {
			req.Header.Set(pair[0], pair[1])
		}
	}
	res, err := client.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func watchMemory(t *testing.T) func() uint64 {
	t.Helper()
	var mu sync.Mutex
	var peak uint64
	sample := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		mu.Lock()
		defer mu.Unlock()
		peak = max(peak, m.HeapInuse+m.StackInuse)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			sample()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	t.Cleanup(func() { close(stop); wg.Wait() })
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return peak
	}
}
