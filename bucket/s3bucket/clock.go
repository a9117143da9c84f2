package s3bucket

import (
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// storeClock estimates the store's clock from the Date header of the latest response. It is an HTTP
// client that records the header.
//
// The estimate is D + (now - r), where D is the date of a response that arrived when the local
// clock showed r. The store wrote D before r, and HTTP truncates D to seconds, so the store's clock
// had reached D at r. Both clocks have advanced by the same time since then, so the store's clock
// has reached the estimate. A signature that is valid for 5 minutes from the estimate expires at
// most 5 minutes from now by the store's clock.
//
// Most errors make the estimate too early. A signature with an early time expires early, so that
// the caller only loses time. The estimate is too early if the response was slow or cached. It is
// also too early if the machine slept, because now - r is a monotonic duration, which does not
// include sleep. Setting the local wall clock has no effect. A response without a Date, or from a
// gateway that could not reach the store (5xx), is ignored. The estimate is too late if the servers
// of one store have different clocks, or if the local clock runs faster than the store's clock.
// Callers that rely on the expiry add a margin that covers both.
type storeClock struct {
	aws.HTTPClient

	mu   sync.Mutex
	date time.Time // zero before the first response
	at   time.Time // when the response arrived, with a monotonic reading
}

// Do implements [aws.HTTPClient].
func (c *storeClock) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.HTTPClient.Do(req)
	if err != nil || resp.StatusCode >= http.StatusInternalServerError {
		return resp, err
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.date, c.at = date, time.Now()
	}
	return resp, nil
}

// StoreTime implements [github.com/pawlhq/pawl/bucket.Expirer].
func (s *Store) StoreTime(now time.Time) time.Time {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	if s.clock.date.IsZero() {
		return now
	}
	return s.clock.date.Add(time.Since(s.clock.at))
}
