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

// maxBodies bounds the bodies that are being read, in bytes: all together.
const maxBodyBytes = 16 << 20

// maxConnections returns how many connections may be open: a quarter of the
// descriptors, because the ledger, the object store and commands need some too.
func maxConnections(descriptors int) int { return min(max(descriptors/4, 8), 1000) }

// conns knows every connection of a server, and bounds what they cost. No new
// connection waits for room: a stranger's, whose sender has proven nothing yet, is
// ended for it. A good sender proves itself within milliseconds, and so is not the
// one that has been there the longest, or has the largest body.
//
// It also ends them. The server's own Shutdown gives a connection that has sent
// nothing yet five seconds, and Close does not wait for handlers to return: this
// does both.
type connTracker struct {
	max      int
	maxBytes int64
	onEvict  func(why string) // reports each connection that is ended for want of room

	bytes atomic.Int64 // of all visitors

	mu          sync.Mutex
	all         map[net.Conn]*connection
	evictedOpen int // of all
	draining    bool
	ended       sync.WaitGroup

	// Those that may be ended for want of room, the longest waiting first.
	unauthenticated, idle list.List
}

// visitor is a connection. Its atomic fields are read and written without a lock,
// because thousands of senders may send a byte at a time.
type connection struct {
	conn          net.Conn
	bytes         atomic.Int64 // of the body that is being read
	evicted       atomic.Bool
	unused        bool       // nothing was sent yet
	authenticated bool       // its sender has proven itself
	list          *list.List // strangers, idle or nil
	element       *list.Element
}

func newConnTracker(max int, maxBytes int64, onEvict func(why string)) *connTracker {
	return &connTracker{max: max, maxBytes: maxBytes, onEvict: onEvict, all: make(map[net.Conn]*connection)}
}

type connectionKey struct{}

// context is the server's ConnContext hook, which is called before a connection is
// reported new: by it a request finds its visitor.
func (c *connTracker) connContext(ctx context.Context, conn net.Conn) context.Context {
	v := &connection{conn: conn, unused: true}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[conn] = v
	return context.WithValue(ctx, connectionKey{}, v)
}

// visitorOf returns the visitor of a request, or nil if it came over no connection.
func connectionOf(r *http.Request) *connection {
	v, _ := r.Context().Value(connectionKey{}).(*connection)
	return v
}

// track is the server's ConnState hook. A connection is reported new before
// Serve returns, and closed after its handler has returned.
func (c *connTracker) connState(conn net.Conn, state http.ConnState) {
	var evicted []*connection
	c.mu.Lock()
	v := c.all[conn]
	switch state {
	case http.StateNew:
		c.ended.Add(1)
		v.moveTo(&c.unauthenticated)
		evicted = c.evictForConnection(v)
		if c.draining {
			_ = conn.Close() // nothing was said on it
		}
	case http.StateActive:
		v.unused = false
		if v.list == &c.idle { // a proxy may send the next request for another client, which has proven nothing
			v.authenticated = false
			v.moveTo(&c.unauthenticated)
		}
	case http.StateIdle:
		if v.authenticated && !v.evicted.Load() {
			v.moveTo(&c.idle)
		}
	case http.StateClosed:
		v.unlist()
		delete(c.all, conn)
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

// makeRoom evicts connections while there are too many: strangers, then idle ones,
// and only if all others are at work the newest itself.
func (c *connTracker) evictForConnection(newest *connection) (evicted []*connection) {
	for len(c.all)-c.evictedOpen > c.max {
		v := c.unauthenticated.Front().Value.(*connection)
		if v == newest && c.idle.Len() > 0 {
			v = c.idle.Front().Value.(*connection)
		}
		c.evict(v)
		evicted = append(evicted, v)
	}
	return evicted
}

// evict takes a connection out of all counts. The caller ends it, without the lock.
func (c *connTracker) evict(v *connection) {
	v.unlist()
	v.evicted.Store(true)
	c.evictedOpen++
	c.bytes.Add(-v.bytes.Swap(0))
}

// end closes connections that were evicted, which waits for those who read from them.
func (c *connTracker) closeAll(evicted []*connection, why string) {
	for _, v := range evicted {
		_ = v.conn.Close() // its sender has to connect again
		c.onEvict(why)
	}
}

// admit notes that the sender of a request has proven itself.
func (c *connTracker) markAuthenticated(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := connectionOf(r); v != nil && !v.evicted.Load() {
		v.authenticated = true
		v.unlist()
	}
}

// reserve counts bytes of a request's body. It returns false if there is no room
// for them: known senders fill it, or the request is itself of a stranger that had
// to make room.
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

// makeRoomForBodies evicts the strangers with the largest bodies, until a quarter of
// the room is free.
func (c *connTracker) evictForBodies() (evicted []*connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes.Load() <= c.maxBytes {
		return nil // another has made room
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

// release forgets the bytes of a request's body.
func (c *connTracker) release(r *http.Request) {
	if v := connectionOf(r); v != nil {
		c.bytes.Add(-v.bytes.Swap(0))
	}
}

// body returns the body of a request, whose bytes are counted. Its Read fails with
// errCrowded where there is no room for them.
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

// refuse closes the connections on which nothing was sent, now and later.
func (c *connTracker) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	for conn, v := range c.all {
		if v.unused {
			_ = conn.Close() // nothing was said on it
		}
	}
}

func (c *connTracker) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// wait returns when all connections have ended. The server must have stopped
// accepting.
func (c *connTracker) wait() { c.ended.Wait() }
