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
const maxBodies = 16 << 20

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
type conns struct {
	max      int
	maxBytes int64
	crowded  func(why string) // reports each connection that is ended for want of room

	bytes atomic.Int64 // of all visitors

	mu       sync.Mutex
	all      map[net.Conn]*visitor
	evicted  int // of all
	refusing bool
	ended    sync.WaitGroup

	// Those that may be ended for want of room, the longest waiting first.
	strangers, idle list.List
}

// visitor is a connection. Its atomic fields are read and written without a lock,
// because thousands of senders may send a byte at a time.
type visitor struct {
	conn    net.Conn
	bytes   atomic.Int64 // of the body that is being read
	evicted atomic.Bool
	fresh   bool       // nothing was sent yet
	known   bool       // its sender has proven itself
	in      *list.List // strangers, idle or nil
	place   *list.Element
}

func newConns(most int, mostBytes int64, crowded func(why string)) *conns {
	return &conns{max: most, maxBytes: mostBytes, crowded: crowded, all: make(map[net.Conn]*visitor)}
}

type visitorKey struct{}

// context is the server's ConnContext hook, which is called before a connection is
// reported new: by it a request finds its visitor.
func (c *conns) context(ctx context.Context, conn net.Conn) context.Context {
	v := &visitor{conn: conn, fresh: true}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[conn] = v
	return context.WithValue(ctx, visitorKey{}, v)
}

// visitorOf returns the visitor of a request, or nil if it came over no connection.
func visitorOf(r *http.Request) *visitor {
	v, _ := r.Context().Value(visitorKey{}).(*visitor)
	return v
}

// track is the server's ConnState hook. A connection is reported new before
// Serve returns, and closed after its handler has returned.
func (c *conns) track(conn net.Conn, state http.ConnState) {
	var crowded []*visitor
	c.mu.Lock()
	v := c.all[conn]
	switch state {
	case http.StateNew:
		c.ended.Add(1)
		v.enter(&c.strangers)
		crowded = c.makeRoom(v)
		if c.refusing {
			_ = conn.Close() // nothing was said on it
		}
	case http.StateActive:
		v.fresh = false
		if v.in == &c.idle { // a proxy may send the next request for another client, which has proven nothing
			v.known = false
			v.enter(&c.strangers)
		}
	case http.StateIdle:
		if v.known && !v.evicted.Load() {
			v.enter(&c.idle)
		}
	case http.StateClosed:
		v.leave()
		delete(c.all, conn)
		if v.evicted.Load() {
			c.evicted--
		}
		c.ended.Done()
	}
	c.mu.Unlock()
	c.end(crowded, "too many connections")
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

// makeRoom evicts connections while there are too many: strangers, then idle ones,
// and only if all others are at work the newest itself.
func (c *conns) makeRoom(newest *visitor) (evicted []*visitor) {
	for len(c.all)-c.evicted > c.max {
		v := c.strangers.Front().Value.(*visitor)
		if v == newest && c.idle.Len() > 0 {
			v = c.idle.Front().Value.(*visitor)
		}
		c.evict(v)
		evicted = append(evicted, v)
	}
	return evicted
}

// evict takes a connection out of all counts. The caller ends it, without the lock.
func (c *conns) evict(v *visitor) {
	v.leave()
	v.evicted.Store(true)
	c.evicted++
	c.bytes.Add(-v.bytes.Swap(0))
}

// end closes connections that were evicted, which waits for those who read from them.
func (c *conns) end(evicted []*visitor, why string) {
	for _, v := range evicted {
		_ = v.conn.Close() // its sender has to connect again
		c.crowded(why)
	}
}

// admit notes that the sender of a request has proven itself.
func (c *conns) admit(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := visitorOf(r); v != nil && !v.evicted.Load() {
		v.known = true
		v.leave()
	}
}

// reserve counts bytes of a request's body. It returns false if there is no room
// for them: known senders fill it, or the request is itself of a stranger that had
// to make room.
func (c *conns) reserve(r *http.Request, n int) bool {
	v := visitorOf(r)
	if v == nil {
		return true
	}
	if v.evicted.Load() {
		return false
	}
	v.bytes.Add(int64(n))
	if c.bytes.Add(int64(n)) > c.maxBytes {
		c.end(c.makeRoomForBodies(), "too many unfinished bodies")
	}
	return !v.evicted.Load() && c.bytes.Load() <= c.maxBytes
}

// makeRoomForBodies evicts the strangers with the largest bodies, until a quarter of
// the room is free.
func (c *conns) makeRoomForBodies() (evicted []*visitor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes.Load() <= c.maxBytes {
		return nil // another has made room
	}
	var largest []*visitor
	for e := c.strangers.Front(); e != nil; e = e.Next() {
		largest = append(largest, e.Value.(*visitor))
	}
	slices.SortStableFunc(largest, func(a, b *visitor) int { return cmp.Compare(b.bytes.Load(), a.bytes.Load()) })
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
func (c *conns) release(r *http.Request) {
	if v := visitorOf(r); v != nil {
		c.bytes.Add(-v.bytes.Swap(0))
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
