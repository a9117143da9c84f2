package s3bucket

import (
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// storeClock estimates the store's clock from the Date header of its latest answer. It
// is an HTTP client that notes that header.
//
// The estimate is D + (now - r): the answer with the date D arrived when the local clock
// showed r. The store wrote D before r, and HTTP cuts D to the second, so the store's
// clock had reached D at r. Both clocks have run since, so the store's clock has reached
// the estimate now. A signature that is valid for 5 minutes from the estimate on expires
// at most 5 minutes from now by the store's clock.
//
// What can be wrong makes the estimate too early, and an early signature only expires
// early, which costs time. The answer took long, or a cache kept it: D is old. The machine
// slept: its monotonic clock, which now - r is measured by, stood still. Setting the local
// wall clock changes nothing. An answer without a Date, or from a gateway that failed to
// reach the store (5xx), is not used. Two errors remain that make the estimate too late:
// servers of one store whose clocks differ, and a local clock that runs faster than the
// store's since the latest answer. Callers that rely on the expiry wait longer by a margin
// that covers both.
type storeClock struct {
	aws.HTTPClient

	mu   sync.Mutex
	date time.Time // zero: no answer yet
	at   time.Time // when it arrived, with a monotonic reading
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
