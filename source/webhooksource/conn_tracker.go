package webhooksource

import (
	"cmp"
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

const maxBodyBytes = 16 << 20

// maxConnections is a quarter of the file descriptors, because the ledger, the store and commands need some
// too.
func maxConnections(descriptors int) int { return min(max(descriptors/4, 8), 1000) }

// connTracker bounds the number of connections and their bodies. At a limit it closes a connection that is
// not authenticated: the oldest one, or the one with the largest body. A legitimate sender authenticates
// within milliseconds, so it is rarely chosen.
//
// It also closes connections at shutdown. Server.Shutdown waits five seconds for a connection that has sent
// nothing, and Server.Close does not wait for handlers to return.
type connTracker struct {
	max      int
	maxBytes int64
	onEvict  func(why string)

	bytes atomic.Int64

	mu          sync.Mutex
	conns       map[net.Conn]*connection
	evictedOpen int // evicted connections that are still in conns
	draining    bool
	ended       sync.WaitGroup

	// Connections that may be evicted, the oldest first.
	unauthenticated, idle list.List
}

// The atomic fields need no lock, because thousands of senders may send one byte at a time.
type connection struct {
	conn          net.Conn
	bytes         atomic.Int64 // of the body that is being read
	evicted       atomic.Bool
	unused        bool       // the client has sent nothing
	authenticated bool       // the sender of the current request is
	list          *list.List // unauthenticated, idle or nil
	element       *list.Element
}

func newConnTracker(maxConns int, maxBytes int64, onEvict func(why string)) *connTracker {
	return &connTracker{max: maxConns, maxBytes: maxBytes, onEvict: onEvict, conns: make(map[net.Conn]*connection)}
}

type connectionKey struct{}

// The server calls connContext before it reports the connection as new.
func (c *connTracker) connContext(ctx context.Context, conn net.Conn) context.Context {
	v := &connection{conn: conn, unused: true}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = v
	return context.WithValue(ctx, connectionKey{}, v)
}

func connectionOf(r *http.Request) *connection {
	v, _ := r.Context().Value(connectionKey{}).(*connection)
	return v
}

// The server reports a connection as new before Serve returns, and as closed after its handler has
// returned.
func (c *connTracker) connState(conn net.Conn, state http.ConnState) {
	var evicted []*connection
	c.mu.Lock()
	v := c.conns[conn]
	switch state {
	case http.StateNew:
		c.ended.Add(1)
		v.moveTo(&c.unauthenticated)
		evicted = c.evictForConnection(v)
		if c.draining {
			_ = conn.Close()
		}
	case http.StateActive:
		v.unused = false
		if v.list == &c.idle { // behind a proxy, the next request may come from another client
			v.authenticated = false
			v.moveTo(&c.unauthenticated)
		}
	case http.StateIdle:
		if v.authenticated && !v.evicted.Load() {
			v.moveTo(&c.idle)
		}
	case http.StateClosed:
		v.unlist()
		delete(c.conns, conn)
		if v.evicted.Load() {
			c.evictedOpen--
		}
		c.ended.Done()
	}
	c.mu.Unlock()
	c.closeAll(evicted, "too many connections")
}

func (v *connection) moveTo(l *list.List) {
	v.unlist()
	v.list, v.element = l, l.PushBack(v)
}

func (v *connection) unlist() {
	if v.list != nil {
		v.list.Remove(v.element)
		v.list, v.element = nil, nil
	}
}

// evictForConnection evicts unauthenticated connections first, then idle ones. If all other
// connections have an authenticated request, it evicts newest.
func (c *connTracker) evictForConnection(newest *connection) (evicted []*connection) {
	for len(c.conns)-c.evictedOpen > c.max {
		v := c.unauthenticated.Front().Value.(*connection)
		if v == newest && c.idle.Len() > 0 {
			v = c.idle.Front().Value.(*connection)
		}
		c.evict(v)
		evicted = append(evicted, v)
	}
	return evicted
}

// The caller closes it after it has released the lock.
func (c *connTracker) evict(v *connection) {
	v.unlist()
	v.evicted.Store(true)
	c.evictedOpen++
	c.bytes.Add(-v.bytes.Swap(0))
}

// Closing waits for the connections' readers, so the caller must not hold the lock.
func (c *connTracker) closeAll(evicted []*connection, why string) {
	for _, v := range evicted {
		_ = v.conn.Close()
		c.onEvict(why)
	}
}

func (c *connTracker) markAuthenticated(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := connectionOf(r); v != nil && !v.evicted.Load() {
		v.authenticated = true
		v.unlist()
	}
}

// reserve returns false if the limit is reached by bodies of authenticated senders, or if the request's own
// connection was evicted.
func (c *connTracker) reserve(r *http.Request, n int) bool {
	v := connectionOf(r)
	if v == nil {
		return true
	}
	if v.evicted.Load() {
		return false
	}
	v.bytes.Add(int64(n))
	if c.bytes.Add(int64(n)) > c.maxBytes {
		c.closeAll(c.evictForBodies(), "too many unfinished bodies")
	}
	return !v.evicted.Load() && c.bytes.Load() <= c.maxBytes
}

func (c *connTracker) evictForBodies() (evicted []*connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes.Load() <= c.maxBytes {
		return nil
	}
	var largest []*connection
	for e := c.unauthenticated.Front(); e != nil; e = e.Next() {
		largest = append(largest, e.Value.(*connection))
	}
	slices.SortStableFunc(largest, func(a, b *connection) int { return cmp.Compare(b.bytes.Load(), a.bytes.Load()) })
	for _, v := range largest {
		if c.bytes.Load() <= c.maxBytes-c.maxBytes/4 || v.bytes.Load() == 0 {
			break
		}
		c.evict(v)
		evicted = append(evicted, v)
	}
	return evicted
}

func (c *connTracker) release(r *http.Request) {
	if v := connectionOf(r); v != nil {
		c.bytes.Add(-v.bytes.Swap(0))
	}
}

// Read of the returned body fails with errBodiesFull if reserve fails.
func (c *connTracker) countedBody(r *http.Request) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		n, err := r.Body.Read(b)
		if !c.reserve(r, n) {
			err = errBodiesFull
		}
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func (c *connTracker) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	for conn, v := range c.conns {
		if v.unused {
			_ = conn.Close()
		}
	}
}

func (c *connTracker) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// The server must have stopped accepting.
func (c *connTracker) wait() { c.ended.Wait() }
