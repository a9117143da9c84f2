package admin

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

const maxConnections = 256

// connections bounds the number of open connections, so that idle or slow clients cannot make probes
// fail. At the limit a new connection replaces the one that has waited longest for its request, or else the
// one with the oldest request.
type connections struct {
	mu            sync.Mutex
	waiting, busy []net.Conn // the oldest first
}

// track is the server's ConnState.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	if old := c.update(conn, state); old != nil {
		_ = old.Close() // waits for its reader, which may call track
	}
}

func (c *connections) update(conn net.Conn, state http.ConnState) (replaced net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := func(other net.Conn) bool { return other == conn }
	known := slices.ContainsFunc(slices.Concat(c.waiting, c.busy), is)
	c.waiting, c.busy = slices.DeleteFunc(c.waiting, is), slices.DeleteFunc(c.busy, is)
	switch {
	case state == http.StateActive && known: // and not yet replaced
		c.busy = append(c.busy, conn)
	case state == http.StateNew && len(c.waiting)+len(c.busy) >= maxConnections:
		if len(c.waiting) > 0 {
			replaced, c.waiting = c.waiting[0], c.waiting[1:]
		} else {
			replaced, c.busy = c.busy[0], c.busy[1:]
		}
		fallthrough
	case state == http.StateNew:
		c.waiting = append(c.waiting, conn)
	}
	return replaced
}
