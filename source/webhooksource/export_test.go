package webhooksource

import (
	"net/http"
	"time"

	"github.com/pawlhq/pawl/source"
)

// SetReadTimeout shortens the time that a request may take to arrive.
func (s *Source) SetReadTimeout(d time.Duration) { s.limits.header, s.limits.read = d, d }

// Handler answers requests without a connection in between.
func (s *Source) Handler(sink source.Sink) http.Handler { return &endpoint{Source: s, sink: sink} }
