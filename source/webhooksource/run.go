package webhooksource

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/pawlhq/pawl/source"
)

const maxHeaderBytes = 16 << 10

// Run listens and serves until ctx ends. Then it waits up to the shutdown timeout for the outcomes of
// accepted posts. Senders must post again if they get no response. Run may be called once.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if s.started.Swap(true) {
		return errors.New("webhook: Run was called twice: create a new source")
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	s.addr = listener.Addr()
	close(s.ready)
	s.cfg.Logger.Info("listening for notifications", "address", s.addr.String(), "path", s.cfg.Path)

	// Requests outlive ctx, up to the shutdown timeout.
	requests, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	conns := newConnTracker(s.limits.maxConns, s.limits.maxBodyBytes, func(why string) {
		s.warnings.evicted.Log(ctx, "closed a connection to stay within the limits", "why", why)
	})
	server := s.server(ctx, requests, conns, sink)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	var runErr error
	select {
	case <-ctx.Done():
		s.shutDown(requests, cancelRequests, server, conns)
		<-served //nolint:errcheck // it was asked to end
	case err := <-served:
		runErr = fmt.Errorf("webhook: serve on %s: %w", s.addr, err)
		s.shutDown(requests, cancelRequests, server, conns)
	}
	conns.wait()
	return runErr
}

func (s *Source) server(ctx, requests context.Context, conns *connTracker, sink source.Sink) *http.Server {
	return &http.Server{
		Handler:           &endpoint{Source: s, stopping: ctx.Done(), sink: sink, conns: conns},
		ReadHeaderTimeout: s.limits.readHeader,
		ReadTimeout:       s.limits.read,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         conns.connState,
		ConnContext:       conns.connContext,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          log.New(s.warnings, "", 0),
	}
}

func (s *Source) shutDown(requests context.Context, cancelRequests func(), server *http.Server, conns *connTracker) {
	conns.closeUnused()
	shutdownTimeout, cancel := context.WithTimeout(requests, s.cfg.ShutdownTimeout)
	defer cancel()
	if server.Shutdown(shutdownTimeout) == nil {
		return
	}
	s.cfg.Logger.Warn("shutdown timeout reached: closing connections without a response; their senders must post again", "connections", conns.count())
	cancelRequests()
	_ = server.Close()
}
