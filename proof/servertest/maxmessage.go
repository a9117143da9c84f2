package servertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// WithMaxMessage returns the URL of a queue through a proxy that reports a MaximumMessageSize.
func (q *Queues) WithMaxMessage(t testing.TB, queueURL string, size int) string {
	t.Helper()
	target, err := url.Parse(q.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), ".GetQueueAttributes") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		var answer struct{ Attributes map[string]string }
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		if answer.Attributes == nil {
			answer.Attributes = map[string]string{}
		}
		answer.Attributes["MaximumMessageSize"] = strconv.Itoa(size)
		if body, err = json.Marshal(answer); err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	return srv.URL + strings.TrimPrefix(queueURL, q.Endpoint)
}
