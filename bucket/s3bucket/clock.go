package s3bucket

import (
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"

	"github.com/pawlhq/pawl/bucket"
)

// storeClock is an HTTP client that estimates the store's clock. The estimate is D + (now - r),
// where D is the Date of the latest response and r the local time of its arrival. The store wrote
// D before r, so its clock has reached the estimate.
//
// The estimate is too early if the response was slow or cached, or if the machine slept, because
// a monotonic duration excludes sleep. A signature then expires early, which costs only time. It
// is too late if the servers of one store have different clocks, or if the local clock is fast.
// Callers that rely on the expiry add a margin for both. A 5xx is ignored, because its Date may be
// that of a gateway.
type storeClock struct {
	aws.HTTPClient
	report func(bucket.Request) // optional

	mu   sync.Mutex
	date time.Time // zero before the first response
	at   time.Time // with a monotonic reading
}

// Do implements [aws.HTTPClient].
func (c *storeClock) Do(req *http.Request) (*http.Response, error) {
	sent := time.Now()
	resp, err := c.HTTPClient.Do(req)
	r := bucket.Request{Operation: middleware.GetOperationName(req.Context())}
	if err == nil {
		r.Status = resp.StatusCode
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && r.Status < http.StatusInternalServerError {
			r.Skew, r.Dated = c.set(date, sent), true
		}
	}
	if c.report != nil {
		c.report(r)
	}
	return resp, err
}

// set returns the smallest skew that explains the Date of a response that arrived now. The Date is
// rounded down to seconds.
func (c *storeClock) set(date, sent time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.date, c.at = date, time.Now()
	return max(date.Sub(c.at), 0) + min(date.Add(time.Second).Sub(sent), 0)
}

// OnRequest implements [bucket.Reporter].
func (s *Store) OnRequest(report func(bucket.Request)) { s.clock.report = report }

// StoreTime implements [github.com/pawlhq/pawl/bucket.Expirer].
func (s *Store) StoreTime(now time.Time) time.Time {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	if s.clock.date.IsZero() {
		return now
	}
	return s.clock.date.Add(time.Since(s.clock.at))
}
