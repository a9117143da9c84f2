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

// maxHeader bounds a request's header, in bytes. Senders need a tenth of it.
const maxHeader = 16 << 10

// Run listens and serves until ctx ends. Then it stops taking connections,
// waits for the posts that the sink has and answers them, as long as the grace
// allows; what is left unanswered the sender has to post again. A source runs
// once.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if s.started.Swap(true) {
		return errors.New("webhook: already run: make a new one")
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	s.addr = listener.Addr()
	close(s.ready)
	s.cfg.Logger.Info("listening for notifications", "address", s.addr.String(), "path", s.cfg.Path)

	// Requests outlive ctx: they end with an answer, or with the grace.
	requests, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	conns := newConns(s.limits.conns, s.limits.bodies, func(why string) {
		s.log.crowded.Log(ctx, "a connection was ended for want of room: the longest silent one, or the one with the largest unfinished body", "why", why)
	})
	server := s.server(ctx, requests, conns, sink)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	var broken error
	select {
	case <-ctx.Done():
		s.drain(requests, abandon, server, conns)
		<-served //nolint:errcheck // it was asked to end
	case err := <-served:
		broken = fmt.Errorf("webhook: listening on %s ended: %w", s.addr, err)
		s.drain(requests, abandon, server, conns)
	}
	conns.wait()
	return broken
}

func (s *Source) server(ctx, requests context.Context, conns *conns, sink source.Sink) *http.Server {
	return &http.Server{
		Handler:           &endpoint{Source: s, ended: ctx.Done(), sink: sink, conns: conns},
		ReadHeaderTimeout: s.limits.header,
		ReadTimeout:       s.limits.read,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    maxHeader,
		ConnState:         conns.track,
		ConnContext:       conns.context,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          log.New(s.log, "", 0),
	}
}

// drain ends every connection: those with a request once it is answered or the
// grace is over.
func (s *Source) drain(requests context.Context, abandon func(), server *http.Server, conns *conns) {
	conns.refuse()
	grace, cancel := context.WithTimeout(requests, s.cfg.Grace)
	defer cancel()
	if server.Shutdown(grace) == nil {
		return
	}
	s.cfg.Logger.Warn("notifications are left unanswered: their senders have to post them again", "connections", conns.open())
	abandon()
	_ = server.Close() // the connections are given up: nothing to report
}
