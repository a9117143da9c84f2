// Package fakes3 is an S3 endpoint in memory, for quick tests:
// gofakes3, with one fault mended.
//
// It believes any credentials, sends no notifications, ignores If-Match on
// DELETE, and a PUT without metadata leaves the metadata of the object before.
package fakes3

import (
	"io"
	"log"
	"net/http"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// New returns a handler of the S3 API over no buckets: create them through it.
func New() http.Handler {
	quiet := gofakes3.StdLog(log.New(io.Discard, "", 0))
	return gofakes3.New(unversioned{s3mem.New()}, gofakes3.WithLogger(quiet), gofakes3.WithoutVersioning()).Server()
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
