package sqssource

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// SetVisibility shortens what a message is kept from others, and how long in all.
func (s *Source) SetVisibility(visibility, maxHold time.Duration) {
	s.limits.visibility, s.limits.maxHold = visibility, maxHold
}

// SetRoom bounds the messages in flight.
func (s *Source) SetMaxInFlight(n int) { s.limits.maxInFlight = n }

// SetServer lets do answer the requests.
func (s *Source) SetServer(do func(*http.Request) (*http.Response, error)) {
	s.client = sqs.New(s.client.Options(), func(o *sqs.Options) { o.HTTPClient = doer(do) })
}

// Region is the one that requests are signed for.
func (s *Source) Region() string { return s.region }

type doer func(*http.Request) (*http.Response, error)

func (f doer) Do(r *http.Request) (*http.Response, error) { return f(r) }
