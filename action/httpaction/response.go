package httpaction

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action"
)

const (
	// maxBody limits what is read of a response body, in bytes.
	maxBody = 4 << 10
	// bodyTimeout limits the read of a body, which only serves error messages and the reuse of
	// the connection.
	bodyTimeout   = 2 * time.Second
	maxRetryAfter = time.Hour
)

func (h *handler) readExcerpt(res *http.Response, cancel func()) string {
	timer := time.AfterFunc(h.bodyTimeout, cancel)
	defer timer.Stop()
	// A part is sufficient.
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxBody))
	_ = res.Body.Close()
	return excerpt(string(body))
}

func excerpt(text string) string {
	return action.Excerpt([]byte(text[:min(len(text), action.MaxExcerpt)]))
}

func resultOf(res *http.Response, body string, now time.Time) error {
	code := res.StatusCode
	if 200 <= code && code < 300 {
		return nil
	}
	err := statusError(code, body)
	switch {
	case code == http.StatusServiceUnavailable:
		return withRetryAfter(unreachable(err), res, now)
	case code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		return withRetryAfter(pawl.OutageIfShared(err, "gateway", objectsGateway), res, now)
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		return withRetryAfter(err, res, now)
	case code < 100: // not from the service
		return err
	case 300 <= code && code < 400:
		return pawl.Permanent(redirected(res, err))
	}
	return pawl.Permanent(err)
}

// A failure for this many objects is an outage of the service. A single object may cause a
// gateway error.
const (
	objectsUnreachable = 2
	objectsGateway     = 5
)

// unreachable marks a request that no service has processed.
func unreachable(err error) error {
	return pawl.OutageIfShared(err, "unreachable", objectsUnreachable)
}

func withRetryAfter(err error, res *http.Response, now time.Time) error {
	if after := retryAfter(res.Header.Get("Retry-After"), now); after > 0 {
		return pawl.RetryAfter(err, after)
	}
	return err
}

func statusError(code int, body string) error {
	text := strconv.Itoa(code)
	if known := http.StatusText(code); known != "" {
		text += " " + known
	}
	if body != "" {
		text += ": " + body
	}
	return errors.New(text)
}

func redirected(res *http.Response, err error) error {
	to := "elsewhere"
	if u, e := res.Location(); e == nil {
		to = "to " + excerpt(redactedURL(u))
	}
	return fmt.Errorf("redirected %s, which is not followed (configure the final url): %w", to, err)
}

// retryAfter returns 0 if the header is missing, in the past or invalid. RFC 9110, 10.2.3.
func retryAfter(header string, now time.Time) time.Duration {
	seconds, err := strconv.ParseUint(header, 10, 64)
	switch {
	case err == nil && seconds < uint64(maxRetryAfter/time.Second):
		return time.Duration(seconds) * time.Second
	case err == nil, errors.Is(err, strconv.ErrRange):
		return maxRetryAfter
	}
	date, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxRetryAfter)
}
