package servertest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// LossyProxy is a proxy that closes connections instead of forwarding responses.
type LossyProxy struct {
	Addr string

	target   string
	drop     func(piece []byte) bool
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	open     map[net.Conn]bool
	closed   bool
}

// NewLossyProxy starts a proxy, which calls lose concurrently for each piece of a response.
func NewLossyProxy(t testing.TB, target string, lose func(piece []byte) bool) *LossyProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &LossyProxy{Addr: l.Addr().String(), target: target, drop: lose, listener: l, open: map[net.Conn]bool{}}
	f.wg.Go(f.accept)
	t.Cleanup(f.close)
	return f
}

func (f *LossyProxy) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.wg.Go(func() { f.relay(client) })
	}
}

func (f *LossyProxy) relay(client net.Conn) {
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		_ = client.Close()
		return
	}
	defer f.closeConns(client, server)
	if !f.track(client, server) {
		return
	}
	f.wg.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	piece := make([]byte, 64<<10)
	for {
		n, err := server.Read(piece)
		if err != nil || f.drop(piece[:n]) {
			return
		}
		if _, err := client.Write(piece[:n]); err != nil {
			return
		}
	}
}

func (f *LossyProxy) track(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		f.open[c] = true
	}
	return !f.closed
}

func (f *LossyProxy) closeConns(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(f.open, c)
	}
}

func (f *LossyProxy) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.open {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}
