// Package fakes3 is an S3 endpoint in memory, for quick tests:
// gofakes3, with one fault mended.
//
// It believes any signature that has not expired, sends no notifications, ignores If-Match on
// DELETE, and a PUT without metadata leaves the metadata of the object before.
package fakes3

import (
	"io"
	"log"
	"net/http"
	"strconv"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// New returns a handler of the S3 API over no buckets: create them through it.
func New() http.Handler {
	quiet := gofakes3.StdLog(log.New(io.Discard, "", 0))
	return RefuseExpired(gofakes3.New(unversioned{s3mem.New()}, gofakes3.WithLogger(quiet), gofakes3.WithoutVersioning()).Server())
}

// RefuseExpired refuses presigned requests that begin after their signature expired, as S3
// does. Package gofakes3 accepts them.
func RefuseExpired(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
		seconds, none := strconv.Atoi(q.Get("X-Amz-Expires"))
		if err == nil && none == nil && time.Since(signed) > time.Duration(seconds)*time.Second {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>") // or the caller has gone
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unversioned has no version ids. Of s3mem's own, HEAD tells a version id where
// GET tells none, and the same object looks like two.
type unversioned struct{ *s3mem.Backend }

// HeadObject implements [gofakes3.Backend].
func (u unversioned) HeadObject(bucket, key string) (*gofakes3.Object, error) {
	o, err := u.Backend.HeadObject(bucket, key)
	if err == nil && o != nil {
		o.VersionID = ""
	}
	return o, err
}
