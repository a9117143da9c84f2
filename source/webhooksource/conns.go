package webhooksource

import (
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// maxBodies bounds the bodies that are being read, in bytes: all together.
const maxBodies = 32 << 20

// maxConnections returns how many connections may be open: a quarter of the
// descriptors, because the ledger, the object store and commands need some too.
func maxConnections(descriptors int) int { return min(max(descriptors/4, 8), 1000) }

// conns knows every connection of a server, and bounds what they cost. Nobody is
// kept waiting for room: it is taken from a stranger, whose sender has proven
// nothing yet. A good sender proves itself within milliseconds, and so is not the
// one that has been there the longest, or has the largest body.
//
// It also ends them. The server's own Shutdown gives a connection that has sent
// nothing yet five seconds, and Close does not wait for handlers to return: this
// does both.
type conns struct {
	max      int
	maxBytes int64
	crowded  func(why string) // is told of each connection that is ended for want of room

	mu       sync.Mutex
	all      map[net.Conn]*visitor
	evicted  int // of all
	bytes    int64
	refusing bool
	ended    sync.WaitGroup

	// Those that may be ended for want of room, the longest waiting first.
	strangers, idle list.List
}

// visitor is a connection.
type visitor struct {
	conn    net.Conn
	fresh   bool // nothing was sent yet
	known   bool // its sender has proven itself
	evicted bool
	bytes   int64      // of the body that is being read
	in      *list.List // strangers, idle or nil
	place   *list.Element
}

func newConns(most int, mostBytes int64, crowded func(why string)) *conns {
	return &conns{max: most, maxBytes: mostBytes, crowded: crowded, all: make(map[net.Conn]*visitor)}
}

type connKey struct{}

// context is the server's ConnContext hook: by it a request finds its visitor.
func (c *conns) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// visitor returns the visitor of a request, or nil if it came over no connection.
// The caller holds mu.
func (c *conns) visitor(r *http.Request) *visitor {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	return c.all[conn]
}

// track is the server's ConnState hook. A connection is reported new before
// Serve returns, and closed after its handler has returned.
func (c *conns) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.all[conn]
	switch state {
	case http.StateNew:
		c.ended.Add(1)
		v = &visitor{conn: conn, fresh: true}
		c.all[conn] = v
		v.enter(&c.strangers)
		c.makeRoom(v)
		if c.refusing {
			_ = conn.Close() // nothing was said on it
		}
	case http.StateActive:
		v.fresh = false
		if v.in == &c.idle {
			v.leave()
		}
	case http.StateIdle:
		if v.known && !v.evicted {
			v.enter(&c.idle)
		}
	case http.StateClosed:
		v.leave()
		delete(c.all, conn)
		if v.evicted {
			c.evicted--
		}
		c.ended.Done()
	}
}

func (v *visitor) enter(l *list.List) {
	v.leave()
	v.in, v.place = l, l.PushBack(v)
}

func (v *visitor) leave() {
	if v.in != nil {
		v.in.Remove(v.place)
		v.in, v.place = nil, nil
	}
}

// makeRoom ends connections while there are too many: strangers, then idle ones,
// and only if all others are at work the newest itself.
func (c *conns) makeRoom(newest *visitor) {
	for len(c.all)-c.evicted > c.max {
		v := c.strangers.Front().Value.(*visitor)
		if v == newest && c.idle.Len() > 0 {
			v = c.idle.Front().Value.(*visitor)
		}
		c.evict(v, "too many connections")
	}
}

func (c *conns) evict(v *visitor, why string) {
	v.leave()
	v.evicted = true
	c.evicted++
	c.bytes -= v.bytes
	v.bytes = 0
	_ = v.conn.Close() // its sender has to connect again
	c.crowded(why)
}

// admit notes that the sender of a request has proven itself.
func (c *conns) admit(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.visitor(r); v != nil && !v.evicted {
		v.known = true
		v.leave()
	}
}

// reserve counts bytes of a request's body. It returns false if there is no room
// for them: known senders fill it, or the request is itself of a stranger that had
// to make room.
func (c *conns) reserve(r *http.Request, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.visitor(r)
	if v == nil {
		return true
	}
	if v.evicted {
		return false
	}
	v.bytes += int64(n)
	c.bytes += int64(n)
	for c.bytes > c.maxBytes {
		largest := c.largest()
		if largest == nil {
			return false
		}
		c.evict(largest, "too many unfinished bodies")
	}
	return !v.evicted
}

// largest returns the stranger with the largest body, or nil if none has one.
func (c *conns) largest() (largest *visitor) {
	for e := c.strangers.Front(); e != nil; e = e.Next() {
		if v := e.Value.(*visitor); v.bytes > 0 && (largest == nil || v.bytes > largest.bytes) {
			largest = v
		}
	}
	return largest
}

// release forgets the bytes of a request's body.
func (c *conns) release(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.visitor(r); v != nil {
		c.bytes -= v.bytes
		v.bytes = 0
	}
}

// body returns the body of a request, whose bytes are counted. Its Read fails with
// errCrowded where there is no room for them.
func (c *conns) body(r *http.Request) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		n, err := r.Body.Read(b)
		if !c.reserve(r, n) {
			err = errCrowded
		}
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// refuse closes the connections on which nothing was sent, now and later.
func (c *conns) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusing = true
	for conn, v := range c.all {
		if v.fresh {
			_ = conn.Close() // nothing was said on it
		}
	}
}

func (c *conns) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// wait returns when all connections have ended. The server must have stopped
// accepting.
func (c *conns) wait() { c.ended.Wait() }
