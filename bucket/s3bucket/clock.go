package s3bucket

import (
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// storeClock estimates the store's clock from the Date header of the latest response. It is an
// HTTP client that records the header.
//
// The estimate is D + (now - r), where D is the date of a response that arrived when the local
// clock showed r. The store wrote D before r, and HTTP truncates D to seconds, so the store's
// clock had reached D at r. Both clocks have advanced since, so the store's clock has reached
// the estimate. A signature that is valid for 5 minutes from the estimate expires at most 5
// minutes from now by the store's clock.
//
// Most errors make the estimate too early. An early signature only expires early, which costs
// time. This happens if the response was slow or cached, or if the machine slept: now - r is a
// monotonic duration, which does not include sleep. Setting the local wall clock has no effect.
// A response without a Date, or from a gateway that could not reach the store (5xx), is
// ignored. Two errors make the estimate too late: servers of one store with different clocks,
// and a local clock that runs faster than the store's. Callers that rely on the expiry add a
// margin that covers both.
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
