package webhooksource

import (
	"context"
	"net"
	"net/http"
	"slices"
	"testing"
)

type trackerTest struct {
	*connTracker
	t      *testing.T
	closed []string
}

type namedConn struct {
	net.Conn
	name string
	c    *trackerTest
}

func (n *namedConn) Close() error {
	n.c.closed = append(n.c.closed, n.name)
	return nil
}

func newTrackerTest(t *testing.T, maxConns int, maxBytes int64) *trackerTest {
	c := &trackerTest{t: t}
	c.connTracker = newConnTracker(maxConns, maxBytes, func(string) {})
	return c
}

func (c *trackerTest) connect(name string) (*http.Request, net.Conn) {
	conn := &namedConn{name: name, c: c}
	r, err := http.NewRequestWithContext(c.connContext(context.Background(), conn), http.MethodPost, "/", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.connState(conn, http.StateNew)
	return r, conn
}

func (c *trackerTest) wantClosed(names ...string) {
	c.t.Helper()
	if !slices.Equal(c.closed, names) {
		c.t.Errorf("closed %q, want %q", c.closed, names)
	}
}

func TestConnectionEvictionOrder(t *testing.T) {
	c := newTrackerTest(t, 3, 1000)
	idle, idleConn := c.connect("idle")
	c.markAuthenticated(idle)
	c.connState(idleConn, http.StateActive)
	c.connState(idleConn, http.StateIdle)
	busy, _ := c.connect("busy")
	c.markAuthenticated(busy)
	c.connect("stranger 1")
	c.wantClosed()
	c.connect("stranger 2")
	c.wantClosed("stranger 1")
	s3, _ := c.connect("stranger 3")
	c.markAuthenticated(s3)
	c.wantClosed("stranger 1", "stranger 2")
	s4, _ := c.connect("stranger 4")
	c.markAuthenticated(s4)
	c.wantClosed("stranger 1", "stranger 2", "idle")
	c.connect("stranger 5") // all others have an authenticated request
	c.wantClosed("stranger 1", "stranger 2", "idle", "stranger 5")
	c.connState(idleConn, http.StateClosed)
	if n := c.count(); n != 6 || c.evictedOpen != 3 {
		t.Errorf("%d connections are tracked, %d of them evicted, want 6 and 3", n, c.evictedOpen)
	}
}

// Behind a proxy, the next request may come from another client.
func TestEachRequestMustAuthenticate(t *testing.T) {
	for _, proven := range []bool{true, false} {
		c := newTrackerTest(t, 1, 1000)
		r, conn := c.connect("known")
		c.markAuthenticated(r)
		c.connState(conn, http.StateIdle)
		c.connState(conn, http.StateActive)
		if proven {
			c.markAuthenticated(r)
		}
		c.connect("stranger")
		c.wantClosed(map[bool]string{true: "stranger", false: "known"}[proven])
	}
}

func TestBodyEvictionOrder(t *testing.T) {
	c := newTrackerTest(t, 10, 1000)
	known, _ := c.connect("known")
	c.markAuthenticated(known)
	small, _ := c.connect("small")
	large, _ := c.connect("large")
	for _, s := range []struct {
		r    *http.Request
		n    int
		want bool
	}{
		{known, 500, true}, {small, 100, true}, {large, 390, true},
		{small, 20, true},          // large is evicted
		{large, 1, false},          // was evicted
		{small, 390, false},        // no other connection can be evicted
		{known, 500, true},         // reaches the limit exactly
		{known, 1, false},          // exceeds the limit
		{&http.Request{}, 9, true}, // without a connection
	} {
		if got := c.reserve(s.r, s.n); got != s.want {
			t.Errorf("%d bytes: %t, want %t, after %q", s.n, got, s.want, c.closed)
		}
	}
	c.wantClosed("large", "small")
	for _, r := range []*http.Request{known, small, large} {
		c.release(r)
	}
	if n := c.bytes.Load(); n != 0 {
		t.Errorf("%d bytes are still counted at the end", n)
	}
}

func TestMaxConnections(t *testing.T) {
	for descriptors, want := range map[int]int{16: 8, 64: 16, 1024: 256, 1 << 20: 1000} {
		if got := maxConnections(descriptors); got != want {
			t.Errorf("%d descriptors: %d connections, want %d", descriptors, got, want)
		}
	}
	if n := descriptors(); n < 64 {
		t.Errorf("this process may have %d descriptors", n)
	}
}
