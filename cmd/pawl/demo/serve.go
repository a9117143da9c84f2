package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/johannesboyne/gofakes3"

	"github.com/pawlhq/pawl/event"
)

type endpoint struct {
	url    string
	server *http.Server
	ended  chan error
}

// serve listens on a loopback address and rejects requests of web pages. The port may be 0.
func serve(ctx context.Context, addr string, api http.Handler) (*endpoint, error) {
	return listen(ctx, addr, localOnly(api, false))
}

func listen(ctx context.Context, addr string, h http.Handler) (*endpoint, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("the demo's object store cannot listen on %s: choose another address with --listen: %w", event.Quote(addr), err)
	}
	e := &endpoint{
		url:    "http://" + l.Addr().String(),
		server: &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, ErrorLog: discardLogger()},
		ended:  make(chan error, 1),
	}
	go func() { e.ended <- e.server.Serve(l) }()
	return e, nil
}

func s3API(s *store) http.Handler {
	return gofakes3.New(s, gofakes3.WithLogger(gofakes3.StdLog(discardLogger()))).Server()
}

func discardLogger() *log.Logger { return log.New(io.Discard, "", 0) }

// checkLoopback rejects addresses that other machines can reach, because the store accepts any
// credentials.
func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: want host:port, such as 127.0.0.1:9100", event.Quote(addr))
	}
	if !isLoopback(host) {
		return fmt.Errorf("the demo's object store accepts any credentials, so it does not listen on %s: use 127.0.0.1", event.Quote(addr))
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// localOnly rejects requests of web pages in a browser on this machine. They have an Origin header,
// or a host name other than localhost (DNS rebinding). If pages is set, it accepts pages of this
// server.
func localOnly(next http.Handler, pages bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		origin := r.Header.Get("Origin")
		foreign := origin != "" && !(pages && origin == "http://"+r.Host)
		if foreign || err != nil || !isLoopback(host) {
			http.Error(w, "the demo rejects requests of other web pages", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// close aborts requests that take too long.
func (e *endpoint) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := e.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = e.server.Close()
	}
	if served := <-e.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
