package sqssource

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// SetVisibility shortens what a message is kept from others, and how long in all.
func (s *Source) SetVisibility(visibility, held time.Duration) {
	s.limits.visibility, s.limits.held = visibility, held
}

// SetRoom bounds the messages in flight.
func (s *Source) SetRoom(n int) { s.limits.room = n }

// SetServer lets do answer the requests.
func (s *Source) SetServer(do func(*http.Request) (*http.Response, error)) {
	s.client = sqs.New(s.client.Options(), func(o *sqs.Options) { o.HTTPClient = doer(do) })
}

// Region is the one that requests are signed for.
func (s *Source) Region() string { return s.region }

type doer func(*http.Request) (*http.Response, error)

func (f doer) Do(r *http.Request) (*http.Response, error) { return f(r) }
