package rig

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// FilesClient sends requests to the files services and their object store.
type FilesClient struct {
	Base  func() string // URL of a running service, or ""
	Token string
	HTTP  *http.Client
}

// FileAnswer is the API's response about a file, an upload or a page of files.
type FileAnswer struct {
	ID          string        `json:"fileId"`
	State       string        `json:"state"`
	DownloadURL string        `json:"downloadUrl"`
	File        *FileAnswer   `json:"file"`
	Files       []*FileAnswer `json:"files"`
	Next        string        `json:"next"`
	Upload      *SignedURL    `json:"upload"`
	Parts       []*SignedURL  `json:"parts"`
}

// SignedURL is the signed request of an upload.
type SignedURL struct {
	Method, URL string
	Headers     map[string]string
}

// Promise has the declared properties of a file.
type Promise struct {
	Entity      string   `json:"entity"`
	Size        int      `json:"size"`
	ContentType string   `json:"contentType"`
	SHA256      string   `json:"sha256,omitempty"` // hexadecimal, for a file in one part
	PartSize    int      `json:"partSize,omitempty"`
	Parts       []string `json:"parts,omitempty"` // SHA-256 of each part
}

// NewPromise returns the promise of a file in one part.
func NewPromise(entity, contentType string, body []byte) Promise {
	return Promise{Entity: entity, Size: len(body), ContentType: contentType, SHA256: SHA256(body)}
}

// SHA256 returns a SHA-256 in hexadecimal digits.
func SHA256(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Call repeats an idempotent request until its status is below 500 and not 429.
func (c *FilesClient) Call(ctx context.Context, method, path string, headers map[string]string, body []byte) (a *FileAnswer, status int, err error) {
	var last error
	err = Until(ctx, 20*time.Millisecond, func() (bool, error) {
		a, status, last = c.Try(ctx, method, path, headers, body)
		return last == nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests, nil
	})
	if err != nil {
		err = fmt.Errorf("%s %s: %d, %w (%w)", method, path, status, cmp.Or(last, errRejected), err)
	}
	return a, status, err
}

var (
	errNoService = errors.New("no service is up")
	errRejected  = errors.New("the service is busy or fails")
)

// Try sends a request without retries.
func (c *FilesClient) Try(ctx context.Context, method, path string, headers map[string]string, body []byte) (*FileAnswer, int, error) {
	a := &FileAnswer{}
	base := c.Base()
	if base == "" {
		return a, 0, errNoService
	}
	text, status, err := c.Send(ctx, method, base+path, headers, bytes.NewReader(body), len(body))
	if err == nil {
		err = json.Unmarshal(text, a)
	}
	return a, status, err
}

// Want is Call, but another status is an error.
func (c *FilesClient) Want(ctx context.Context, status int, method, path string, headers map[string]string, body []byte) (*FileAnswer, error) {
	a, got, err := c.Call(ctx, method, path, headers, body)
	if err == nil && got != status {
		err = fmt.Errorf("%s %s: %d, want %d", method, path, got, status)
	}
	return a, err
}

// Begin begins an upload, in parts if the promise has parts. Requests with the same key begin the
// same upload.
func (c *FilesClient) Begin(ctx context.Context, key string, p *Promise) (*FileAnswer, error) {
	path := "/v1/uploads"
	if len(p.Parts) > 0 {
		path += "/parts"
	}
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return c.Want(ctx, http.StatusCreated, http.MethodPost, path, map[string]string{"Content-Type": "application/json", "Idempotency-Key": key}, body)
}

// Put sends bytes to a signed URL without retries. The headers replace those of the URL.
func (c *FilesClient) Put(ctx context.Context, to *SignedURL, headers map[string]string, body io.Reader, size int) (int, error) {
	all := map[string]string{}
	for _, from := range []map[string]string{to.Headers, headers} {
		for name, value := range from {
			all[name] = value
		}
	}
	_, status, err := c.Send(ctx, to.Method, to.URL, all, body, size)
	return status, err
}

// List returns all files of an entity, in small pages.
func (c *FilesClient) List(ctx context.Context, entity string) (all []*FileAnswer, err error) {
	for next := ""; ; {
		page, err := c.Want(ctx, http.StatusOK, http.MethodGet, "/v1/entities/"+entity+"/files?limit=7&after="+url.QueryEscape(next), nil, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Files...)
		if next = page.Next; next == "" {
			return all, nil
		}
	}
}

// Send sends one request. Only services get the token: the store's URLs are signed.
func (c *FilesClient) Send(ctx context.Context, method, url string, headers map[string]string, body io.Reader, size int) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, 0, err
	}
	r.ContentLength = int64(size)
	if size == 0 {
		r.Body = http.NoBody
	}
	if !r.URL.Query().Has("X-Amz-Signature") {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return c.Do(r)
}

// Do returns the body and the status of the response.
func (c *FilesClient) Do(r *http.Request) ([]byte, int, error) {
	res, err := c.HTTP.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return text, res.StatusCode, err
}
