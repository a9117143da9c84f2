//go:build unix

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// filesSecret signs the clients' tokens.
const filesSecret = "0123456789abcdef0123456789abcdef"

// filesClient is a subject that sends requests to whichever process answers.
type filesClient struct {
	apis  func() []string
	http  *http.Client
	token string
	rng   *rand.Rand
}

func newFilesClient(t testing.TB, subject string, rng *rand.Rand, apis func() []string) *filesClient {
	t.Helper()
	// A stopped process keeps a request for as long; a held back upload takes as long.
	client := &http.Client{Timeout: longestHold + 2*time.Second, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &filesClient{apis: apis, http: client, token: filesToken(t, subject), rng: rng}
}

func filesToken(t testing.TB, subject string) string {
	t.Helper()
	made, err := jwt.NewBuilder().Subject(subject).Expiration(time.Now().Add(time.Hour)).Claim("scope", "read:* write:*").Build()
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Sign(made, jwt.WithKey(jwa.HS256(), []byte(filesSecret)))
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}

// fileAnswer is what the API says of a file, of an upload and of a page.
type fileAnswer struct {
	ID          string        `json:"fileId"`
	State       string        `json:"state"`
	DownloadURL string        `json:"downloadUrl"`
	File        *fileAnswer   `json:"file"`
	Files       []*fileAnswer `json:"files"`
	Next        string        `json:"next"`
	Upload      *sendAnswer   `json:"upload"`
	Parts       []*sendAnswer `json:"parts"`
}

type sendAnswer struct {
	Method, URL string
	Headers     map[string]string
}

// call sends a request until a process answers it. Requests that are sent again
// change nothing: they are idempotent, or have a key.
func (c *filesClient) call(ctx context.Context, method, path string, headers map[string]string, body []byte) (a fileAnswer, status int, err error) {
	for {
		a, status, err = c.once(ctx, method, path, headers, body)
		if err == nil && status < 500 && status != http.StatusTooManyRequests {
			return a, status, nil
		}
		select {
		case <-ctx.Done():
			return a, status, fmt.Errorf("%s %s: %d, %w (%w)", method, path, status, err, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var errNoProcess = errors.New("no process is there")

func (c *filesClient) once(ctx context.Context, method, path string, headers map[string]string, body []byte) (a fileAnswer, status int, err error) {
	apis := c.apis()
	if len(apis) == 0 {
		return a, 0, errNoProcess
	}
	url := "http://" + apis[c.rng.IntN(len(apis))] + path
	text, status, err := c.send(ctx, method, url, headers, body)
	if err != nil {
		return a, status, err
	}
	return a, status, json.Unmarshal(text, &a)
}

func (c *filesClient) send(ctx context.Context, method, url string, headers map[string]string, body []byte) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	for name, value := range headers {
		if name != "Content-Length" { // net/http sets it to what it sends
			r.Header.Set(name, value)
		}
	}
	return c.do(r)
}

func (c *filesClient) do(r *http.Request) ([]byte, int, error) {
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return text, resp.StatusCode, err
}

// want is an answer that must have a status.
func (c *filesClient) want(ctx context.Context, status int, method, path string, headers map[string]string, body []byte) (fileAnswer, error) {
	a, got, err := c.call(ctx, method, path, headers, body)
	if err == nil && got != status {
		err = fmt.Errorf("%s %s: %d, want %d", method, path, got, status)
	}
	return a, err
}

// sign begins an upload.
func (c *filesClient) sign(ctx context.Context, entity, key string, body []byte) (fileAnswer, error) {
	sum := sha256.Sum256(body)
	text := fmt.Sprintf(`{"entity":%q,"size":%d,"contentType":"text/plain","sha256":%q}`, entity, len(body), hex.EncodeToString(sum[:]))
	return c.want(ctx, http.StatusCreated, http.MethodPost, "/v1/uploads",
		map[string]string{"Content-Type": "application/json", "Idempotency-Key": key}, []byte(text))
}

// filePart is how long the parts of a file are but the last.
const filePart = 5 << 20

// signParts begins an upload in parts.
func (c *filesClient) signParts(ctx context.Context, entity, key string, body []byte) (fileAnswer, error) {
	var sums []string
	for part := range slices.Chunk(body, filePart) {
		sum := sha256.Sum256(part)
		sums = append(sums, fmt.Sprintf("%q", hex.EncodeToString(sum[:])))
	}
	text := fmt.Sprintf(`{"entity":%q,"size":%d,"contentType":"text/plain","partSize":%d,"parts":[%s]}`, entity, len(body), filePart, strings.Join(sums, ","))
	return c.want(ctx, http.StatusCreated, http.MethodPost, "/v1/uploads/parts",
		map[string]string{"Content-Type": "application/json", "Idempotency-Key": key}, []byte(text))
}

// put sends bytes to the store, or their parts from the last to the first.
func (c *filesClient) put(ctx context.Context, signed *fileAnswer, body []byte) error {
	if signed.Upload != nil {
		return c.putPiece(ctx, signed.Upload, body)
	}
	for i, part := range slices.Backward(slices.Collect(slices.Chunk(body, filePart))) {
		if err := c.putPiece(ctx, signed.Parts[i], part); err != nil {
			return err
		}
	}
	return nil
}

// putPiece sends bytes to the store until it has them. It has them too if it refuses
// another copy.
func (c *filesClient) putPiece(ctx context.Context, signed *sendAnswer, body []byte) error {
	for {
		status, err := c.putOnce(ctx, signed, body)
		switch {
		case err == nil && (status == http.StatusOK || status == http.StatusPreconditionFailed):
			return nil
		case err == nil && status == http.StatusNotFound: // of parts: they were completed meanwhile
			return nil
		case err == nil && status < 500:
			return fmt.Errorf("the store answers an upload with %d", status)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

func (c *filesClient) putOnce(ctx context.Context, u *sendAnswer, body []byte) (int, error) {
	r, err := http.NewRequestWithContext(ctx, u.Method, u.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for name, value := range u.Headers {
		if name != "Content-Length" { // net/http sets it to what it sends
			r.Header.Set(name, value)
		}
	}
	_, status, err := c.do(r)
	return status, err
}

// list returns all files of an entity, by small pages.
func (c *filesClient) list(ctx context.Context, entity string) (all []*fileAnswer, err error) {
	for next := ""; ; {
		page, err := c.want(ctx, http.StatusOK, http.MethodGet, "/v1/entities/"+entity+"/files?limit=7&after="+next, nil, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Files...)
		if next = page.Next; next == "" {
			return all, nil
		}
	}
}
