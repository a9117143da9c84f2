package webhooksource

import (
	"net"
	"net/http"
	"sync"
)

// conns knows every connection of a server. The server's own Shutdown gives a
// connection that has sent nothing yet five seconds, and Close does not wait
// for handlers to return: this does both.
type conns struct {
	mu       sync.Mutex
	fresh    map[net.Conn]struct{} // connected, nothing sent yet
	count    int
	refusing bool
	all      sync.WaitGroup
}

func newConns() *conns { return &conns{fresh: make(map[net.Conn]struct{})} }

// track is the server's ConnState hook. A connection is reported new before
// Serve returns, and closed after its handler has returned.
func (c *conns) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.all.Add(1)
		c.count++
		c.fresh[conn] = struct{}{}
		if c.refusing {
			_ = conn.Close() // nothing was said on it
		}
	case http.StateActive:
		delete(c.fresh, conn)
	case http.StateClosed:
		delete(c.fresh, conn)
		c.count--
		c.all.Done()
	}
}

// refuse closes the connections on which nothing was sent, now and later.
func (c *conns) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusing = true
	for conn := range c.fresh {
		_ = conn.Close() // nothing was said on it
	}
}

func (c *conns) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// wait returns when all connections have ended. The server must have stopped
// accepting.
func (c *conns) wait() { c.all.Wait() }
