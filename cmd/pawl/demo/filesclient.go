package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/proof/rig"
)

// filesClient speaks to the services and to the store, as a program of a user does.
type filesClient struct {
	url, token string
	http       *http.Client
}

// fileAnswer is what the services say of a file, of an upload and of a page.
type fileAnswer struct {
	ID          string        `json:"fileId"`
	State       string        `json:"state"`
	DownloadURL string        `json:"downloadUrl"`
	File        *fileAnswer   `json:"file"`
	Files       []*fileAnswer `json:"files"`
	Next        string        `json:"next"`
	Upload      *signedURL    `json:"upload"`
}

// signedURL is where an upload goes, and the headers that it must have.
type signedURL struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// call sends a request to a service until one answers it: what is sent again changes
// nothing.
func (c *filesClient) call(ctx context.Context, method, path string, headers map[string]string, body []byte) (a *fileAnswer, status int, err error) {
	err = rig.Until(ctx, 50*time.Millisecond, func() (bool, error) {
		var text []byte
		text, status, err = c.send(ctx, method, c.url+path, headers, bytes.NewReader(body), int64(len(body)))
		if err != nil || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			return false, nil // it was killed, or has enough to do
		}
		a = &fileAnswer{}
		return true, json.Unmarshal(text, a)
	})
	if err != nil {
		return nil, status, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return a, status, nil
}

// begin begins the upload of a file.
func (c *filesClient) begin(ctx context.Context, key string, u *promise) (*fileAnswer, int, error) {
	body, err := json.Marshal(u)
	if err != nil {
		return nil, 0, err
	}
	return c.call(ctx, http.MethodPost, "/v1/uploads", map[string]string{"Content-Type": "application/json", "Idempotency-Key": key}, body)
}

// promise is what a client says of a file before it uploads it.
type promise struct {
	Entity      string `json:"entity"`
	Size        int    `json:"size"`
	ContentType string `json:"contentType"`
	SHA256      string `json:"sha256"` // in hexadecimal digits
}

// put sends bytes to a signed URL, once, and returns the store's status.
func (c *filesClient) put(ctx context.Context, to *signedURL, headers map[string]string, body io.Reader, size int) (int, error) {
	all := map[string]string{}
	for _, from := range []map[string]string{to.Headers, headers} {
		for name, value := range from {
			all[name] = value
		}
	}
	_, status, err := c.send(ctx, http.MethodPut, to.URL, all, body, int64(size))
	return status, err
}

// send sends one request. The store gets no token: its URLs are signed.
func (c *filesClient) send(ctx context.Context, method, url string, headers map[string]string, body io.Reader, size int64) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, 0, err
	}
	r.ContentLength = size
	if size == 0 {
		r.Body = http.NoBody
	}
	if !r.URL.Query().Has("X-Amz-Signature") {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = res.Body.Close() }() // it was only read from
	text, err := io.ReadAll(res.Body)
	return text, res.StatusCode, err
}
