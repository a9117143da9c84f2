package sqssource

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func (s *Source) SetVisibility(visibility, maxHold time.Duration) {
	s.limits.visibility, s.limits.maxHold = visibility, maxHold
}

func (s *Source) SetMaxInFlight(n int) { s.limits.maxInFlight = n }

// SetServer sends all requests to do instead of a server.
func (s *Source) SetServer(do func(*http.Request) (*http.Response, error)) {
	s.client = sqs.New(s.client.Options(), func(o *sqs.Options) { o.HTTPClient = doer(do) })
}

func (s *Source) Region() string { return s.region }

type doer func(*http.Request) (*http.Response, error)

func (f doer) Do(r *http.Request) (*http.Response, error) { return f(r) }
