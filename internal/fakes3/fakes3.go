// Package fakes3 is an in-memory S3 endpoint for fast tests: gofakes3 with corrections for expiry, version
// IDs and times.
//
// It accepts any signature that has not expired, sends no notifications, and ignores If-Match on DELETE. A
// PUT without metadata keeps the metadata of the previous object.
package fakes3

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// New returns a handler of the S3 API without buckets.
func New() http.Handler {
	quiet := gofakes3.StdLog(log.New(io.Discard, "", 0))
	return RefuseExpired(gofakes3.New(NewBackend(), gofakes3.WithLogger(quiet), gofakes3.WithoutVersioning()).Server())
}

// RefuseExpired rejects requests whose presigned URL has expired, as S3 does.
func RefuseExpired(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
		seconds, none := strconv.Atoi(q.Get("X-Amz-Expires"))
		if err == nil && none == nil && time.Since(signed) > time.Duration(seconds)*time.Second {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Backend returns no version IDs, because s3mem returns one for HEAD but none for GET.
type Backend struct {
	*s3mem.Backend
	mu    sync.Mutex // held while an object is stored
	clock clock
}

// NewBackend returns a Backend without buckets.
func NewBackend() *Backend {
	b := &Backend{clock: clock{TimeSource: gofakes3.DefaultTimeSource()}}
	b.Backend = s3mem.New(s3mem.WithTimeSource(&b.clock))
	return b
}

// HeadObject implements [gofakes3.Backend].
func (b *Backend) HeadObject(bucket, key string) (*gofakes3.Object, error) {
	o, err := b.Backend.HeadObject(bucket, key)
	if err == nil && o != nil {
		o.VersionID = ""
	}
	return o, err
}

// PutObject makes listings, HEAD and GET return the same time, as in S3.
func (b *Backend) PutObject(bucket, key string, meta map[string]string, body io.Reader, size int64, c *gofakes3.PutConditions) (gofakes3.PutObjectResult, error) {
	// A slow client must not block other requests.
	data, err := gofakes3.ReadAll(body, size)
	if err != nil {
		return gofakes3.PutObjectResult{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.TimeSource.Now()
	b.clock.stored.Store(&now)
	defer b.clock.stored.Store(nil)
	meta["Last-Modified"] = now.UTC().Format(http.TimeFormat)
	return b.Backend.PutObject(bucket, key, meta, bytes.NewReader(data), size, c)
}

// CopyObject implements [gofakes3.Backend] over PutObject.
func (b *Backend) CopyObject(fromBucket, fromKey, bucket, key string, meta map[string]string) (gofakes3.CopyObjectResult, error) {
	return gofakes3.CopyObject(b, fromBucket, fromKey, bucket, key, meta)
}

type clock struct {
	gofakes3.TimeSource
	stored atomic.Pointer[time.Time] // stopped at this time; nil if the clock runs
}

// Now implements [gofakes3.TimeSource].
func (c *clock) Now() time.Time {
	if t := c.stored.Load(); t != nil {
		return *t
	}
	return c.TimeSource.Now()
}
