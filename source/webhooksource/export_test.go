package webhooksource

import (
	"io"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/source"
)

func (s *Source) SetReadTimeout(d time.Duration) { s.limits.readHeader, s.limits.read = d, d }

func (s *Source) Handler(sink source.Sink) http.Handler {
	return &endpoint{Source: s, sink: sink, conns: newConnTracker(1, 1, func(string) {})}
}

func (s *Source) SetLimits(conns int, bodies int64) {
	s.limits.maxConns, s.limits.maxBodyBytes = conns, bodies
}

func (s *Source) SetAnswerTimeout(d time.Duration) { s.limits.outcome = d }

func (s *Source) ServerLog() io.Writer { return s.warnings }
