package webhooksource

import (
	"context"
	"net"
	"net/http"
	"slices"
	"testing"
)

// crowd is a set of connections by their names, and what became of them.
type crowd struct {
	*conns
	t     *testing.T
	ended []string
}

type namedConn struct {
	net.Conn
	name string
	c    *crowd
}

func (n *namedConn) Close() error {
	n.c.ended = append(n.c.ended, n.name)
	return nil
}

func newCrowd(t *testing.T, most int, mostBytes int64) *crowd {
	c := &crowd{t: t}
	c.conns = newConns(most, mostBytes, func(string) {})
	return c
}

// arrive returns a request on a new connection.
func (c *crowd) arrive(name string) (*http.Request, net.Conn) {
	conn := &namedConn{name: name, c: c}
	r, err := http.NewRequestWithContext(c.context(context.Background(), conn), http.MethodPost, "/", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.track(conn, http.StateNew)
	return r, conn
}

func (c *crowd) wantEnded(names ...string) {
	c.t.Helper()
	if !slices.Equal(c.ended, names) {
		c.t.Errorf("ended are %q, want %q", c.ended, names)
	}
}

// Strangers make room first, the longest waiting before others; then those that
// are idle; one that is at work never does.
func TestWhoMakesRoomForAConnection(t *testing.T) {
	c := newCrowd(t, 3, 1000)
	idle, idleConn := c.arrive("idle")
	c.admit(idle)
	c.track(idleConn, http.StateActive)
	c.track(idleConn, http.StateIdle)
	busy, _ := c.arrive("busy")
	c.admit(busy)
	c.arrive("stranger 1")
	c.wantEnded()
	c.arrive("stranger 2")
	c.wantEnded("stranger 1")
	s3, _ := c.arrive("stranger 3")
	c.admit(s3)
	c.wantEnded("stranger 1", "stranger 2")
	s4, _ := c.arrive("stranger 4")
	c.admit(s4)
	c.wantEnded("stranger 1", "stranger 2", "idle")
	c.arrive("stranger 5") // all others are at work
	c.wantEnded("stranger 1", "stranger 2", "idle", "stranger 5")
	c.track(idleConn, http.StateClosed)
	if n := c.open(); n != 6 || c.evicted != 3 {
		t.Errorf("%d connections are open, of which %d are ending, want 6 and 3", n, c.evicted)
	}
}

// An idle connection that is used again has to prove itself again: behind a proxy
// the next request may be somebody else's.
func TestEachRequestProvesItself(t *testing.T) {
	for _, proven := range []bool{true, false} {
		c := newCrowd(t, 1, 1000)
		r, conn := c.arrive("known")
		c.admit(r)
		c.track(conn, http.StateIdle)
		c.track(conn, http.StateActive)
		if proven {
			c.admit(r)
		}
		c.arrive("stranger")
		c.wantEnded(map[bool]string{true: "stranger", false: "known"}[proven])
	}
}

// The stranger with the largest body makes room for others, also for itself.
func TestWhoMakesRoomForABody(t *testing.T) {
	c := newCrowd(t, 10, 1000)
	known, _ := c.arrive("known")
	c.admit(known)
	small, _ := c.arrive("small")
	large, _ := c.arrive("large")
	for _, s := range []struct {
		r    *http.Request
		n    int
		want bool
	}{
		{known, 500, true}, {small, 100, true}, {large, 390, true},
		{small, 20, true},          // large makes room
		{large, 1, false},          // too late
		{small, 390, false},        // for want of others
		{known, 500, true},         // to the last byte
		{known, 1, false},          // and no further
		{&http.Request{}, 9, true}, // without a connection
	} {
		if got := c.reserve(s.r, s.n); got != s.want {
			t.Errorf("%d bytes: %t, want %t, after %q", s.n, got, s.want, c.ended)
		}
	}
	c.wantEnded("large", "small")
	for _, r := range []*http.Request{known, small, large} {
		c.release(r)
	}
	if n := c.bytes.Load(); n != 0 {
		t.Errorf("%d bytes are counted at the end", n)
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
