package webhooksource

import (
	"io"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/source"
)

// SetReadTimeout shortens the time that a request may take to arrive.
func (s *Source) SetReadTimeout(d time.Duration) { s.limits.readHeader, s.limits.read = d, d }

// Handler answers requests without a connection in between.
func (s *Source) Handler(sink source.Sink) http.Handler {
	return &endpoint{Source: s, sink: sink, conns: newConnTracker(1, 1, func(string) {})}
}

// SetLimits bounds connections and the bytes of bodies that are being read.
func (s *Source) SetLimits(conns int, bodies int64) {
	s.limits.maxConns, s.limits.maxBodyBytes = conns, bodies
}

// SetAnswerTimeout shortens the time that a post may wait for the sink.
func (s *Source) SetAnswerTimeout(d time.Duration) { s.limits.outcome = d }

// ServerLog is where package net/http writes what it has to say of a server.
func (s *Source) ServerLog() io.Writer { return s.warnings }
